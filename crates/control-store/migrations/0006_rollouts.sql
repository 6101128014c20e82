-- Rollouts: a bundle on its way to nodes, batch by batch.
CREATE TABLE rollouts (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  bundle_id TEXT NOT NULL REFERENCES bundles (id),
  state TEXT NOT NULL CHECK (state IN (
    'planned', 'awaiting_approval', 'running', 'paused', 'completed', 'failed', 'rolling_back',
    'rolled_back', 'cancelled'
  )),
  batch_count BIGINT,
  batch_percent BIGINT,
  max_unavailable BIGINT NOT NULL,
  deadline_secs BIGINT NOT NULL,
  on_failure TEXT NOT NULL CHECK (on_failure IN ('pause', 'roll_back')),
  reason TEXT,
  created_at BIGINT NOT NULL,
  starts_at BIGINT,
  ended_at BIGINT,
  version BIGINT NOT NULL
);
CREATE INDEX rollouts_by_project ON rollouts (project_id, id);
CREATE INDEX rollouts_by_org ON rollouts (org_id);
CREATE INDEX rollouts_by_bundle ON rollouts (bundle_id);
-- The scheduler reads what moves, and nothing else.
CREATE INDEX rollouts_moving ON rollouts (id) WHERE state IN ('running', 'failed', 'rolling_back');
-- Two rollouts at once would fight over the same nodes.
CREATE UNIQUE INDEX rollouts_one_at_a_time ON rollouts (project_id)
  WHERE state IN ('running', 'paused', 'failed', 'rolling_back');

CREATE TABLE rollout_nodes (
  rollout_id TEXT NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
  batch BIGINT NOT NULL,
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  -- What the node ran before, and goes back to.
  previous_bundle_id TEXT,
  PRIMARY KEY (rollout_id, node_id)
);
CREATE INDEX rollout_nodes_by_batch ON rollout_nodes (rollout_id, batch);
CREATE INDEX rollout_nodes_by_node ON rollout_nodes (node_id);
