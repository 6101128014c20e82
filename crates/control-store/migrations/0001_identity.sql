-- One text for SQLite and PostgreSQL: TEXT for identifiers, names and sets, BIGINT for numbers, truth
-- values and times (milliseconds since 1970). `version` counts the writes of a row, from 1.
CREATE TABLE orgs (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL
);

CREATE TABLE projects (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  name TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (org_id, name)
);
CREATE INDEX projects_by_org ON projects (org_id, id);

-- Secrets that must be read again, sealed with a key of the key file.
CREATE TABLE secrets (
  id TEXT PRIMARY KEY,
  org_id TEXT REFERENCES orgs (id),
  master_key TEXT NOT NULL,
  sealed TEXT NOT NULL,
  created_at BIGINT NOT NULL
);
CREATE INDEX secrets_by_master_key ON secrets (master_key, id);
CREATE INDEX secrets_by_org ON secrets (org_id);

CREATE TABLE signing_keys (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  state TEXT NOT NULL CHECK (state IN ('standby', 'active', 'retired', 'deactivated')),
  public_key TEXT NOT NULL,
  secret_id TEXT NOT NULL REFERENCES secrets (id),
  -- The key that signed for this one, and its signature; a first key has neither.
  endorsed_by TEXT REFERENCES signing_keys (id),
  endorsement TEXT,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL
);
CREATE INDEX signing_keys_by_org ON signing_keys (org_id, id);
-- An organization signs with one key at a time.
CREATE UNIQUE INDEX signing_keys_one_active ON signing_keys (org_id) WHERE state = 'active';

CREATE TABLE users (
  id TEXT PRIMARY KEY,
  email TEXT NOT NULL UNIQUE,
  name TEXT NOT NULL,
  password_hash TEXT,
  instance_admin BIGINT NOT NULL CHECK (instance_admin IN (0, 1)),
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL
);

CREATE TABLE memberships (
  org_id TEXT NOT NULL REFERENCES orgs (id),
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  role TEXT NOT NULL CHECK (role IN ('reader', 'operator', 'admin')),
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (org_id, user_id)
);
CREATE INDEX memberships_by_user ON memberships (user_id);

-- One-time links for new users; a row is gone once its link was used.
CREATE TABLE invitations (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  email TEXT NOT NULL,
  role TEXT NOT NULL CHECK (role IN ('reader', 'operator', 'admin')),
  secret_hash TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  expires_at BIGINT NOT NULL,
  UNIQUE (org_id, email)
);
CREATE INDEX invitations_by_org ON invitations (org_id, id);
CREATE INDEX invitations_by_end ON invitations (expires_at);

CREATE TABLE sessions (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  secret_hash TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  revoked_at BIGINT
);
CREATE INDEX sessions_by_user ON sessions (user_id, id);
CREATE INDEX sessions_by_seen ON sessions (seen_at);

CREATE TABLE setup_links (
  id TEXT PRIMARY KEY,
  secret_hash TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL
);

CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT REFERENCES projects (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  -- Names with a space between; empty: full access.
  scopes TEXT NOT NULL,
  secret_hash TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT,
  version BIGINT NOT NULL
);
CREATE INDEX api_keys_by_org ON api_keys (org_id, id);
CREATE INDEX api_keys_by_project ON api_keys (project_id);
