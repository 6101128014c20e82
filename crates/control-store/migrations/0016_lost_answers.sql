-- When a signing key was deactivated; of older ones the audit log knows it.
ALTER TABLE signing_keys ADD COLUMN deactivated_at BIGINT;
UPDATE signing_keys SET deactivated_at = (
    SELECT MAX(a.at) FROM audit a
    WHERE a.action = 'signing_key.deactivated' AND a.subject_id = signing_keys.id)
  WHERE state = 'deactivated';
-- The enrolment token of a registration: the same one may ask again for an answer that was lost. No foreign key, for
-- a node outlives its token. It must come from the same address: another machine may have the same name.
ALTER TABLE nodes ADD COLUMN enrolled_by TEXT;
ALTER TABLE nodes ADD COLUMN enrolled_from TEXT;
