-- Bundles with warnings, and times of the week without changes: texts such as `Fri 16:00-Mon 08:00`, with commas between.
ALTER TABLE projects ADD COLUMN refuse_warnings BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN freezes TEXT NOT NULL DEFAULT '';
-- The same of the wish of `weaker_asked_by`. Its `weaker_approve` is NULL for `all`, too, by which no wish is weaker.
ALTER TABLE projects ADD COLUMN weaker_refuse_warnings BIGINT NOT NULL DEFAULT 0;
ALTER TABLE projects ADD COLUMN weaker_freezes TEXT NOT NULL DEFAULT '';
