-- The running process that the last heartbeat came from: a number that each process draws for itself.
ALTER TABLE node_heartbeats ADD COLUMN instance TEXT;
-- Up to eight earlier ones, the newest first, with a space behind each. One that comes back time and again is of
-- a second process with the same identity.
ALTER TABLE node_heartbeats ADD COLUMN earlier_instances TEXT;
-- When that was seen first, and last.
ALTER TABLE node_heartbeats ADD COLUMN duplicated_since BIGINT;
ALTER TABLE node_heartbeats ADD COLUMN duplicated_at BIGINT;
