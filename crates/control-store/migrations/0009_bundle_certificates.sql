-- The certificates that a bundle names: a node gets those of its own bundles. No foreign key to them, for a
-- certificate may be deleted before the bundle, and files that an operator wrote may name any.
CREATE TABLE bundle_certificates (
  bundle_id TEXT NOT NULL REFERENCES bundles (id) ON DELETE CASCADE,
  certificate_id TEXT NOT NULL,
  PRIMARY KEY (bundle_id, certificate_id)
);
-- 0 for bundles from before this table, and for those that a replica of an older version makes: their archives
-- are read when a node asks for the first time.
ALTER TABLE bundles ADD COLUMN certificates_listed BIGINT NOT NULL DEFAULT 0
  CHECK (certificates_listed IN (0, 1));
-- The last bundle that the node said is in force while its orders named it: it serves that one as long as it
-- rejects newer ones. What nodes said before this column was not compared, and is taken once.
ALTER TABLE node_heartbeats ADD COLUMN confirmed_bundle_id TEXT;
UPDATE node_heartbeats SET confirmed_bundle_id = (
  SELECT b.id FROM bundles b WHERE b.project_id = node_heartbeats.project_id
    AND b.id = COALESCE(node_heartbeats.active_bundle_id, node_heartbeats.last_good_bundle_id));
