-- Members that an administrator removed: no identity provider makes them members again.
CREATE TABLE removed_members (
  org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  removed_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, user_id)
);
CREATE INDEX removed_members_by_user ON removed_members (user_id);

-- Those of before, as the audit log has them.
INSERT INTO removed_members (org_id, user_id, removed_at)
  SELECT a.org_id, a.subject_id, MAX(a.at) FROM audit a
  JOIN orgs o ON o.id = a.org_id
  JOIN users u ON u.id = a.subject_id
  WHERE a.action = 'member.removed' AND NOT EXISTS (
    SELECT 1 FROM memberships m WHERE m.org_id = a.org_id AND m.user_id = a.subject_id)
  GROUP BY a.org_id, a.subject_id;

-- Sign-ins at a provider that prove the identity of a user again.
ALTER TABLE sign_in_attempts ADD COLUMN is_proof BIGINT NOT NULL DEFAULT 0 CHECK (is_proof IN (0, 1));
ALTER TABLE sign_in_tickets ADD COLUMN is_proof BIGINT NOT NULL DEFAULT 0 CHECK (is_proof IN (0, 1));
