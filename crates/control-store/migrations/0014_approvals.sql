-- When a project's nodes are ordered another bundle only with the consent of a second person.
ALTER TABLE projects ADD COLUMN approve TEXT NOT NULL DEFAULT 'none'
  CHECK (approve IN ('none', 'risky', 'all'));
-- A weaker rule that one administrator asked for, and this user: it holds once another one asks for the same.
ALTER TABLE projects ADD COLUMN weaker_approve TEXT CHECK (weaker_approve IN ('none', 'risky'));
ALTER TABLE projects ADD COLUMN weaker_asked_by TEXT;

-- The person behind `submitted_by`, which may be an API key. No foreign key, as of API keys.
ALTER TABLE rollouts ADD COLUMN submitted_person TEXT;
UPDATE rollouts SET submitted_person = submitted_by
  WHERE EXISTS (SELECT 1 FROM users u WHERE u.id = rollouts.submitted_by);
UPDATE rollouts SET submitted_person =
    (SELECT k.made_by FROM api_keys k WHERE k.id = rollouts.submitted_by)
  WHERE submitted_person IS NULL;
