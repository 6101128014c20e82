-- Rows that have ended are found by the time of their end, to be deleted after their retention.
CREATE INDEX bundles_by_age ON bundles (created_at);
CREATE INDEX rollouts_by_end ON rollouts (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX drift_by_end ON drift (resolved_at) WHERE resolved_at IS NOT NULL;
CREATE INDEX enrolment_tokens_by_end ON enrolment_tokens (expires_at);
CREATE INDEX api_keys_by_end ON api_keys (expires_at);
