-- The user that made the key, by another key or not. NULL for keys from before this column. No foreign key, for
-- a key outlives its user.
ALTER TABLE api_keys ADD COLUMN made_by TEXT;
