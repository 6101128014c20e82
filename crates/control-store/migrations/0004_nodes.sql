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
  key_hash TEXT NOT NULL UNIQUE,
  desired_bundle_id TEXT REFERENCES bundles (id),
  -- Grows with every order to this node.
  order_counter BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX nodes_by_project ON nodes (project_id, id);
CREATE INDEX nodes_by_org ON nodes (org_id);
CREATE INDEX nodes_by_desired_bundle ON nodes (desired_bundle_id);

CREATE TABLE node_labels (
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (node_id, name)
);
CREATE INDEX node_labels_by_value ON node_labels (project_id, name, value, node_id);

-- A node's own word, apart from `nodes`: written often, in groups, without a version.
CREATE TABLE node_heartbeats (
  node_id TEXT PRIMARY KEY REFERENCES nodes (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL REFERENCES projects (id),
  seen_at BIGINT NOT NULL,
  cpu_percent DOUBLE PRECISION NOT NULL,
  -- No foreign keys: a node may say anything.
  staged_bundle_id TEXT,
  active_bundle_id TEXT,
  last_good_bundle_id TEXT,
  -- The order that the verdict answers, whether it is in force, and why not.
  verdict_counter BIGINT,
  verdict_accepted BIGINT,
  verdict_diagnostics TEXT
);
CREATE INDEX node_heartbeats_by_seen ON node_heartbeats (project_id, seen_at);
CREATE INDEX node_heartbeats_by_active ON node_heartbeats (project_id, active_bundle_id);

CREATE TABLE drift (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  state TEXT NOT NULL CHECK (state IN ('open', 'resolved')),
  desired_bundle_id TEXT,
  active_bundle_id TEXT,
  opened_at BIGINT NOT NULL,
  resolved_at BIGINT,
  -- `automatic`, `manual` or `rollout`.
  resolution TEXT,
  version BIGINT NOT NULL
);
CREATE INDEX drift_by_project ON drift (project_id, id);
CREATE INDEX drift_by_org ON drift (org_id);
-- A node has one open event at a time.
CREATE UNIQUE INDEX drift_one_open ON drift (node_id) WHERE state = 'open';
