-- The secret of a user's authenticator app, sealed for `totp/{user}`.
CREATE TABLE totp (
  user_id TEXT PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
  master_key TEXT NOT NULL,
  sealed TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- It counts once a code proved that the app has it.
  confirmed_at BIGINT,
  -- The time step of the last code that was accepted: a code works once, for all replicas.
  last_step BIGINT NOT NULL
);
CREATE INDEX totp_by_master_key ON totp (master_key, user_id);

CREATE TABLE recovery_codes (
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  used_at BIGINT,
  PRIMARY KEY (user_id, hash)
);

-- One-time links by which a user sets another password. A row is gone once its link was used.
CREATE TABLE password_resets (
  id TEXT PRIMARY KEY,
  user_id TEXT NOT NULL UNIQUE REFERENCES users (id) ON DELETE CASCADE,
  org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
  secret_hash TEXT NOT NULL UNIQUE,
  -- The administrator that made it, by an API key or not. No foreign key, as of API keys.
  made_by TEXT,
  ends_at BIGINT NOT NULL
);
CREATE INDEX password_resets_by_org ON password_resets (org_id);
CREATE INDEX password_resets_by_end ON password_resets (ends_at);

-- When an administrator took the user's second factor away: said until there is another one.
ALTER TABLE users ADD COLUMN second_factor_reset_at BIGINT;
-- Whether members need a second factor.
ALTER TABLE orgs ADD COLUMN second_factor BIGINT NOT NULL DEFAULT 0 CHECK (second_factor IN (0, 1));
