-- Start of the user's newest session; NULL if none is on record.
ALTER TABLE users ADD COLUMN last_sign_in_at BIGINT;
-- Sessions are kept for eight days, the audit log for longer.
UPDATE users SET last_sign_in_at = found.at
  FROM (SELECT actor_id, MAX(at) AS at FROM audit WHERE action = 'session.started' GROUP BY actor_id) AS found
  WHERE found.actor_id = users.id;

-- Commands on rollouts. The query repeats the condition.
CREATE INDEX audit_of_rollout_commands ON audit (subject_id, seq)
  WHERE action IN ('rollout.created', 'rollout.submit', 'rollout.start', 'rollout.approve', 'rollout.pause',
    'rollout.resume', 'rollout.roll_back', 'rollout.cancel');
