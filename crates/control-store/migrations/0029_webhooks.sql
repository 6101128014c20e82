-- Receivers of a project's events.
CREATE TABLE webhooks (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  url TEXT NOT NULL,
  -- Names of events, with commas between.
  events TEXT NOT NULL,
  enabled BIGINT NOT NULL,
  -- The key of its signatures.
  secret_id TEXT NOT NULL REFERENCES secrets (id),
  -- Nodes with their last heartbeat up to this time are known to be silent.
  silent_up_to BIGINT NOT NULL,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX webhooks_by_project ON webhooks (project_id, id);
CREATE INDEX webhooks_by_org ON webhooks (org_id);
CREATE INDEX webhooks_by_secret ON webhooks (secret_id);

-- Events for a receiver: the queue, and the newest ones that ended.
CREATE TABLE webhook_deliveries (
  id TEXT PRIMARY KEY,
  webhook_id TEXT NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
  event TEXT NOT NULL,
  -- The body, as JSON.
  payload TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'delivered', 'failed')),
  attempts BIGINT NOT NULL,
  -- The next attempt; while one is under way, when it counts as lost.
  next_at BIGINT NOT NULL,
  -- Of the last attempt: the status of the answer, or why there was none.
  last_status BIGINT,
  last_error TEXT,
  created_at BIGINT NOT NULL,
  ended_at BIGINT
);
CREATE INDEX webhook_deliveries_by_webhook ON webhook_deliveries (webhook_id, id);
CREATE INDEX webhook_deliveries_pending ON webhook_deliveries (next_at) WHERE state = 'pending';

-- The newest entry of the audit log whose events are in the queue.
CREATE TABLE webhook_cursor (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  seq BIGINT NOT NULL
);
INSERT INTO webhook_cursor (id, seq) SELECT 1, seq FROM audit_head WHERE id = 1;
