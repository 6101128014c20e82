-- A member's role in one project; the higher one of it and of the organization's counts.
CREATE TABLE project_roles (
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  role TEXT NOT NULL CHECK (role IN ('operator', 'admin')),
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  PRIMARY KEY (project_id, user_id)
);
CREATE INDEX project_roles_by_user ON project_roles (user_id);
