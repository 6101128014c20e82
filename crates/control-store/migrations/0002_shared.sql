-- What replicas share besides the nouns.
CREATE TABLE audit (
  seq BIGINT PRIMARY KEY,
  at BIGINT NOT NULL,
  actor_kind TEXT NOT NULL,
  actor_id TEXT NOT NULL,
  -- No foreign keys: the log outlives what it speaks of.
  org_id TEXT,
  project_id TEXT,
  action TEXT NOT NULL,
  subject_id TEXT NOT NULL,
  correlation_id TEXT NOT NULL,
  hash TEXT NOT NULL
);
CREATE INDEX audit_by_org ON audit (org_id, seq);

-- Writers queue on this row, so the chain never forks.
CREATE TABLE audit_head (
  id BIGINT PRIMARY KEY CHECK (id = 1),
  seq BIGINT NOT NULL,
  hash TEXT NOT NULL
);
INSERT INTO audit_head (id, seq, hash) VALUES (1, 0, '');

CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  holder TEXT NOT NULL,
  expires_at BIGINT NOT NULL
);

-- `full_at`: the time, in microseconds, at which the bucket is full again. `taken`: tokens of the last group.
CREATE TABLE rate_limits (
  name TEXT PRIMARY KEY,
  full_at BIGINT NOT NULL,
  taken BIGINT NOT NULL
);
CREATE INDEX rate_limits_by_full ON rate_limits (full_at);

-- Answers kept for `Idempotency-Key`. `committed` is written in the transaction of the command.
CREATE TABLE replies (
  name TEXT PRIMARY KEY,
  request_hash TEXT NOT NULL,
  reservation TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  committed BIGINT NOT NULL CHECK (committed IN (0, 1)),
  status BIGINT,
  etag TEXT,
  body TEXT
);
CREATE INDEX replies_by_age ON replies (created_at);
CREATE UNIQUE INDEX replies_by_reservation ON replies (reservation);
