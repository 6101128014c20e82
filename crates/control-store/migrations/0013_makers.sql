-- The user that made an invitation or an enrolment token, by an API key or not. No foreign key, as of API keys.
ALTER TABLE invitations ADD COLUMN made_by TEXT;
ALTER TABLE enrolment_tokens ADD COLUMN made_by TEXT;

-- Makers of before: the audit log knows them. A key of a set-up was made in the millisecond of its user, which the
-- first 48 bits of both identifiers are.
UPDATE api_keys SET made_by = a.subject_id FROM audit a
  WHERE api_keys.made_by IS NULL AND a.action = 'admin.created' AND a.org_id = api_keys.org_id
    AND substr(a.subject_id, 1, 13) = substr(api_keys.id, 1, 13);
UPDATE api_keys SET made_by = a.actor_id FROM audit a
  WHERE api_keys.made_by IS NULL AND a.action = 'api_key.created' AND a.actor_kind = 'user'
    AND a.subject_id = api_keys.id;
-- Keys of keys, and theirs.
UPDATE api_keys SET made_by = k.made_by FROM audit a, api_keys k
  WHERE api_keys.made_by IS NULL AND a.action = 'api_key.created' AND a.actor_kind = 'api_key'
    AND a.subject_id = api_keys.id AND k.id = a.actor_id;
UPDATE api_keys SET made_by = k.made_by FROM audit a, api_keys k
  WHERE api_keys.made_by IS NULL AND a.action = 'api_key.created' AND a.actor_kind = 'api_key'
    AND a.subject_id = api_keys.id AND k.id = a.actor_id;
UPDATE invitations SET made_by = a.actor_id FROM audit a
  WHERE a.action = 'invitation.created' AND a.actor_kind = 'user' AND a.subject_id = invitations.id;
UPDATE invitations SET made_by = k.made_by FROM audit a, api_keys k
  WHERE a.action = 'invitation.created' AND a.actor_kind = 'api_key'
    AND a.subject_id = invitations.id AND k.id = a.actor_id;
UPDATE enrolment_tokens SET made_by = a.actor_id FROM audit a
  WHERE a.action = 'enrolment_token.created' AND a.actor_kind = 'user'
    AND a.subject_id = enrolment_tokens.id;
UPDATE enrolment_tokens SET made_by = k.made_by FROM audit a, api_keys k
  WHERE a.action = 'enrolment_token.created' AND a.actor_kind = 'api_key'
    AND a.subject_id = enrolment_tokens.id AND k.id = a.actor_id;

-- A member that was removed before this migration does not get them back by a new invitation.
UPDATE api_keys SET version = version + 1, revoked_at = COALESCE((
    SELECT MAX(a.at) FROM audit a WHERE a.action = 'member.removed' AND a.org_id = api_keys.org_id
      AND a.subject_id = api_keys.made_by), created_at)
  WHERE revoked_at IS NULL AND made_by IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM memberships m WHERE m.org_id = api_keys.org_id AND m.user_id = api_keys.made_by);
UPDATE enrolment_tokens SET version = version + 1, revoked_at = created_at
  WHERE revoked_at IS NULL AND made_by IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM memberships m
    WHERE m.org_id = enrolment_tokens.org_id AND m.user_id = enrolment_tokens.made_by);
DELETE FROM invitations WHERE made_by IS NOT NULL AND NOT EXISTS (
  SELECT 1 FROM memberships m
  WHERE m.org_id = invitations.org_id AND m.user_id = invitations.made_by);
