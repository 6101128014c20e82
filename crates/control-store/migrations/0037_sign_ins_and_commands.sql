-- Start of the user's newest session; NULL before the first.
ALTER TABLE users ADD COLUMN last_sign_in_at BIGINT;
UPDATE users SET last_sign_in_at = (SELECT MAX(s.created_at) FROM sessions s WHERE s.user_id = users.id);

-- Commands on rollouts. The query repeats the condition.
CREATE INDEX audit_of_rollout_commands ON audit (subject_id, seq)
  WHERE action IN ('rollout.created', 'rollout.submit', 'rollout.start', 'rollout.approve', 'rollout.pause',
    'rollout.resume', 'rollout.roll_back', 'rollout.cancel');
