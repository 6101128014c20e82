-- Trials of a connection by its administrators: the answer is verified, without a session.
ALTER TABLE sign_in_attempts ADD COLUMN is_trial BIGINT NOT NULL DEFAULT 0 CHECK (is_trial IN (0, 1));
ALTER TABLE sign_in_tickets ADD COLUMN is_trial BIGINT NOT NULL DEFAULT 0 CHECK (is_trial IN (0, 1));
ALTER TABLE sso_sign_ins ADD COLUMN is_trial BIGINT NOT NULL DEFAULT 0 CHECK (is_trial IN (0, 1));
