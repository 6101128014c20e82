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
  soak_secs BIGINT NOT NULL,
  -- NULL: no gate.
  gate_min_requests BIGINT,
  gate_error_permille BIGINT,
  gate_p99_percent BIGINT,
  gate_p99_slack_ms BIGINT,
  gate_cpu_percent BIGINT,
  gate_new_failures BIGINT,
  needs_approval BIGINT NOT NULL CHECK (needs_approval IN (0, 1)),
  on_failure TEXT NOT NULL CHECK (on_failure IN ('pause', 'roll_back')),
  -- JSON: the labels by which its nodes were chosen.
  labels TEXT NOT NULL,
  nodes BIGINT NOT NULL,
  batch_size BIGINT NOT NULL,
  -- The batch that was opened last, from 1.
  batch BIGINT,
  reason TEXT,
  not_before BIGINT,
  created_by TEXT NOT NULL,
  submitted_by TEXT,
  created_at BIGINT NOT NULL,
  started_at BIGINT,
  reverting_since BIGINT,
  ended_at BIGINT,
  version BIGINT NOT NULL,
  CHECK ((batch_count IS NULL) <> (batch_percent IS NULL))
);
CREATE INDEX rollouts_by_project ON rollouts (project_id, id);
CREATE INDEX rollouts_by_state ON rollouts (project_id, state, id);
CREATE INDEX rollouts_by_org ON rollouts (org_id);
CREATE INDEX rollouts_by_bundle ON rollouts (bundle_id);
-- The scheduler reads what moves, and nothing else.
CREATE INDEX rollouts_moving ON rollouts (id)
  WHERE state IN ('running', 'paused', 'failed', 'rolling_back');

-- Batches that were opened.
CREATE TABLE rollout_batches (
  rollout_id TEXT NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
  number BIGINT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('open', 'switched', 'passed', 'failed')),
  opened_at BIGINT NOT NULL,
  switched_at BIGINT,
  ended_at BIGINT,
  -- When it ended: its nodes, those that ran the bundle, and JSON of what the gate saw.
  nodes BIGINT,
  ready BIGINT,
  figures TEXT,
  PRIMARY KEY (rollout_id, number)
);

CREATE TABLE rollout_nodes (
  rollout_id TEXT NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  batch BIGINT NOT NULL,
  -- Whether the node is still to be ordered, when its batch is open.
  pending BIGINT NOT NULL DEFAULT 1 CHECK (pending IN (0, 1)),
  -- What the node ran before, and goes back to.
  previous_bundle_id TEXT REFERENCES bundles (id),
  -- The last order of the rollout; none before its batch.
  order_counter BIGINT,
  -- The order to go back; 0: there was nothing to go back to.
  back_counter BIGINT,
  -- Whether the rollout keeps the node from others.
  held BIGINT NOT NULL DEFAULT 0 CHECK (held IN (0, 1)),
  PRIMARY KEY (rollout_id, node_id)
);
CREATE INDEX rollout_nodes_by_batch ON rollout_nodes (rollout_id, batch, node_id);
CREATE INDEX rollout_nodes_by_node ON rollout_nodes (node_id);
CREATE INDEX rollout_nodes_by_previous ON rollout_nodes (previous_bundle_id);
CREATE INDEX rollout_nodes_to_revert ON rollout_nodes (rollout_id, node_id)
  WHERE order_counter IS NOT NULL AND back_counter IS NULL;
-- Two rollouts would fight over a node.
CREATE UNIQUE INDEX rollout_nodes_held ON rollout_nodes (node_id) WHERE held = 1;

-- What nodes had counted when the batch under way was opened: its own, and up to 50 later ones.
CREATE TABLE rollout_samples (
  rollout_id TEXT NOT NULL REFERENCES rollouts (id) ON DELETE CASCADE,
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  of_batch BIGINT NOT NULL CHECK (of_batch IN (0, 1)),
  active_bundle_id TEXT,
  cpu_percent DOUBLE PRECISION NOT NULL,
  traffic TEXT,
  PRIMARY KEY (rollout_id, of_batch, node_id)
);
CREATE INDEX rollout_samples_by_node ON rollout_samples (node_id);
