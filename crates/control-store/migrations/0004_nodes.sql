-- Nodes, how they come, and what they say.
CREATE TABLE enrolment_tokens (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  -- How many nodes it admits, and how many it has admitted.
  max_uses BIGINT NOT NULL,
  uses BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  revoked_at BIGINT,
  version BIGINT NOT NULL,
  CHECK (uses BETWEEN 0 AND max_uses)
);
CREATE INDEX enrolment_tokens_by_project ON enrolment_tokens (project_id, id);
CREATE INDEX enrolment_tokens_by_org ON enrolment_tokens (org_id);

CREATE TABLE nodes (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  -- JSON, to be read with the node; `node_labels` has the same to search in.
  labels TEXT NOT NULL,
  key_hash TEXT NOT NULL UNIQUE,
  -- Takes the place of `key_hash` when it is used for the first time.
  next_key_hash TEXT UNIQUE,
  -- Tokens that were issued before are refused.
  tokens_since BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX nodes_by_project ON nodes (project_id, id);
CREATE INDEX nodes_by_org ON nodes (org_id);

CREATE TABLE node_labels (
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (node_id, name)
);
CREATE INDEX node_labels_by_value ON node_labels (project_id, name, value, node_id);

-- A node's own word, apart from `nodes`: written often, in groups, without a version.
-- The row is made with the node, so that a heartbeat is one update.
CREATE TABLE node_heartbeats (
  node_id TEXT PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL REFERENCES projects (id),
  -- 0 until the first heartbeat.
  seen_at BIGINT NOT NULL,
  cpu_percent DOUBLE PRECISION NOT NULL,
  software TEXT,
  -- No foreign keys: a node may say anything.
  desired_bundle_id TEXT,
  staged_bundle_id TEXT,
  active_bundle_id TEXT,
  last_good_bundle_id TEXT,
  -- The order that the verdict answers, the verdict, and why: JSON, a list of texts.
  verdict_order BIGINT,
  verdict TEXT,
  diagnostics TEXT,
  -- JSON, as the node counted it since its active bundle came into force.
  traffic TEXT,
  -- Since when it runs something else than it was ordered to run.
  diverged_at BIGINT,
  -- Whether it has an open drift.
  is_drifting BIGINT NOT NULL DEFAULT 0 CHECK (is_drifting IN (0, 1))
);
CREATE INDEX node_heartbeats_by_seen ON node_heartbeats (project_id, seen_at, node_id);
CREATE INDEX node_heartbeats_by_active ON node_heartbeats (project_id, active_bundle_id);
-- Drift to open and drift to resolve are found without a look at the fleet.
CREATE INDEX node_heartbeats_diverged ON node_heartbeats (diverged_at)
  WHERE diverged_at IS NOT NULL AND is_drifting = 0;
CREATE INDEX node_heartbeats_returned ON node_heartbeats (node_id)
  WHERE diverged_at IS NULL AND is_drifting = 1;

-- What each node shall run: its newest order.
CREATE TABLE node_orders (
  node_id TEXT PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
  -- Grows with every order to the node.
  counter BIGINT NOT NULL,
  bundle_id TEXT NOT NULL REFERENCES bundles (id),
  -- The bundle of the last order that named another one.
  previous_bundle_id TEXT REFERENCES bundles (id),
  digest TEXT NOT NULL,
  kid TEXT NOT NULL REFERENCES signing_keys (id),
  signature TEXT NOT NULL,
  made_at BIGINT NOT NULL,
  -- The audit entry of the change: replicas read what is newer than what they know.
  seq BIGINT NOT NULL,
  -- The rollout that made it; no foreign key, for rollouts come later than nodes.
  rollout_id TEXT
);
CREATE INDEX node_orders_by_seq ON node_orders (seq);
CREATE INDEX node_orders_by_bundle ON node_orders (bundle_id, node_id);
CREATE INDEX node_orders_by_previous ON node_orders (previous_bundle_id);
CREATE INDEX node_orders_by_kid ON node_orders (kid);

CREATE TABLE node_events (
  id TEXT PRIMARY KEY,
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  -- By the node's clock.
  at BIGINT NOT NULL,
  kind TEXT NOT NULL,
  message TEXT NOT NULL
);
CREATE INDEX node_events_by_node ON node_events (node_id, id);

CREATE TABLE drift (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('open', 'resolved')),
  desired_bundle_id TEXT NOT NULL,
  active_bundle_id TEXT,
  opened_at BIGINT NOT NULL,
  resolved_at BIGINT,
  -- `automatic`, `manual` or `rollout`.
  resolution TEXT,
  version BIGINT NOT NULL
);
CREATE INDEX drift_by_project ON drift (project_id, id);
CREATE INDEX drift_by_state ON drift (project_id, state, id);
CREATE INDEX drift_by_node ON drift (node_id);
CREATE INDEX drift_by_org ON drift (org_id);
-- A node has one open event at a time.
CREATE UNIQUE INDEX drift_one_open ON drift (node_id) WHERE state = 'open';
