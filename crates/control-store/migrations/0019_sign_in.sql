-- How and where a session began. Sessions of before were made by a set-up or an invitation, which set a password.
ALTER TABLE sessions ADD COLUMN method TEXT NOT NULL DEFAULT 'password'
  CHECK (method IN ('password', 'password+totp', 'password+recovery_code', 'oidc', 'saml',
    'oidc+totp', 'saml+totp'));
-- The organization whose identity provider vouched.
ALTER TABLE sessions ADD COLUMN provider_org_id TEXT REFERENCES orgs (id) ON DELETE CASCADE;
ALTER TABLE sessions ADD COLUMN address TEXT;
ALTER TABLE sessions ADD COLUMN browser TEXT NOT NULL DEFAULT '';
-- The last proof of identity is fresh until then; the session ends at `ends_at` however often it is used.
ALTER TABLE sessions ADD COLUMN strong_until BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sessions ADD COLUMN ends_at BIGINT NOT NULL DEFAULT 0;
UPDATE sessions SET ends_at = created_at + 604800000;
CREATE INDEX sessions_by_provider ON sessions (provider_org_id);

-- Sign-ins whose password was right and whose second factor is still to come. A row is gone once it was used.
CREATE TABLE pending_sign_ins (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  secret_hash TEXT NOT NULL UNIQUE,
  address TEXT,
  browser TEXT NOT NULL,
  ends_at BIGINT NOT NULL
);
CREATE INDEX pending_sign_ins_by_user ON pending_sign_ins (user_id);
CREATE INDEX pending_sign_ins_by_end ON pending_sign_ins (ends_at);

-- Browsers in which a user signed in: wrong passwords from elsewhere do not hold them up.
CREATE TABLE known_browsers (
  secret_hash TEXT PRIMARY KEY,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  seen_at BIGINT NOT NULL
);
CREATE INDEX known_browsers_by_user ON known_browsers (user_id, seen_at);
CREATE INDEX known_browsers_by_seen ON known_browsers (seen_at);
