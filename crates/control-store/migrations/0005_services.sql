-- Services: what bundles can be compiled from.
CREATE TABLE certificates (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  chain_pem TEXT NOT NULL,
  -- The private key never enters a bundle.
  secret_id TEXT NOT NULL REFERENCES secrets (id),
  -- Host names with a space between.
  hosts TEXT NOT NULL,
  not_before BIGINT NOT NULL,
  not_after BIGINT NOT NULL,
  -- SHA-256 of the leaf, hexadecimal.
  fingerprint TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX certificates_by_org ON certificates (org_id);
CREATE INDEX certificates_by_project ON certificates (project_id, id);
CREATE INDEX certificates_by_end ON certificates (not_after);
CREATE INDEX certificates_by_secret ON certificates (secret_id);

CREATE TABLE upstreams (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  load_balancing TEXT NOT NULL,
  tls BIGINT NOT NULL CHECK (tls IN (0, 1)),
  tls_server_name TEXT,
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX upstreams_by_org ON upstreams (org_id);
CREATE INDEX upstreams_by_project ON upstreams (project_id, id);

CREATE TABLE upstream_targets (
  upstream_id TEXT NOT NULL REFERENCES upstreams (id) ON DELETE CASCADE,
  position BIGINT NOT NULL,
  address TEXT NOT NULL,
  weight BIGINT NOT NULL,
  PRIMARY KEY (upstream_id, position)
);

CREATE TABLE services (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  host TEXT,
  path_prefix TEXT,
  priority BIGINT NOT NULL,
  upstream_id TEXT NOT NULL REFERENCES upstreams (id),
  certificate_id TEXT REFERENCES certificates (id),
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX services_by_org ON services (org_id);
CREATE INDEX services_by_project ON services (project_id, id);
CREATE INDEX services_by_upstream ON services (upstream_id);
CREATE INDEX services_by_certificate ON services (certificate_id);
