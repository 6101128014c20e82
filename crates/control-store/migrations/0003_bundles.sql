-- Bundles: files that were checked and signed; the archive's bytes lie in the object store.
CREATE TABLE bundles (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('draft', 'validated', 'rejected', 'signed', 'revoked')),
  -- SHA-256 of the archive, Base64-URL.
  digest TEXT,
  size_bytes BIGINT,
  signing_key_id TEXT REFERENCES signing_keys (id),
  signature TEXT,
  -- JSON, as the validator gives it; empty for a draft.
  diagnostics TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  signed_at BIGINT,
  revoked_at BIGINT,
  -- Nodes that were ordered to run it are to be given what they ran before.
  recalling BIGINT NOT NULL DEFAULT 0 CHECK (recalling IN (0, 1)),
  version BIGINT NOT NULL
);
CREATE INDEX bundles_by_project ON bundles (project_id, id);
CREATE INDEX bundles_by_state ON bundles (project_id, state, id);
CREATE INDEX bundles_recalling ON bundles (id) WHERE recalling = 1;
CREATE INDEX bundles_by_org ON bundles (org_id);
CREATE INDEX bundles_by_signing_key ON bundles (signing_key_id);
