-- JSON of settings beyond the columns, with the names of the configuration.
ALTER TABLE upstreams ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
ALTER TABLE services ADD COLUMN settings TEXT NOT NULL DEFAULT '{}';
