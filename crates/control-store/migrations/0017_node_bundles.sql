-- The bundles that each node ran by its orders, and those that it rejected: the ways back from a revoked one.
CREATE TABLE node_bundles (
  node_id TEXT NOT NULL REFERENCES node_heartbeats (node_id) ON DELETE CASCADE,
  bundle_id TEXT NOT NULL REFERENCES bundles (id) ON DELETE CASCADE,
  -- The newest order by which the node ran it, and the newest by which it rejected it.
  confirmed_counter BIGINT,
  rejected_counter BIGINT,
  PRIMARY KEY (node_id, bundle_id)
);
CREATE INDEX node_bundles_confirmed ON node_bundles (node_id, confirmed_counter);
CREATE INDEX node_bundles_by_bundle ON node_bundles (bundle_id);
INSERT INTO node_bundles (node_id, bundle_id, confirmed_counter)
  SELECT h.node_id, h.confirmed_bundle_id,
    CASE WHEN o.bundle_id = h.confirmed_bundle_id THEN o.counter ELSE o.counter - 1 END
  FROM node_heartbeats h JOIN node_orders o ON o.node_id = h.node_id
  JOIN bundles b ON b.id = h.confirmed_bundle_id;
