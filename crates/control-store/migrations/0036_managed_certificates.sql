-- Accounts of organizations at certificate authorities.
CREATE TABLE acme_accounts (
  org_id TEXT NOT NULL REFERENCES orgs (id),
  -- URL of the authority's directory.
  directory TEXT NOT NULL,
  email TEXT NOT NULL,
  -- The account's address and private key.
  secret_id TEXT NOT NULL REFERENCES secrets (id),
  created_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, directory, email)
);
CREATE INDEX acme_accounts_by_secret ON acme_accounts (secret_id);

-- Names for which a certificate is obtained and renewed by ACME.
CREATE TABLE managed_certificates (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  project_id TEXT NOT NULL REFERENCES projects (id),
  name TEXT NOT NULL,
  -- Host names with a space between.
  hosts TEXT NOT NULL,
  directory TEXT NOT NULL,
  email TEXT NOT NULL,
  key_type TEXT NOT NULL,
  -- Labels that a node needs to get the private key, as JSON.
  node_labels TEXT NOT NULL,
  -- The certificate; NULL before the first was issued.
  certificate_id TEXT REFERENCES certificates (id),
  -- The order that is under way, and the private key that it is for.
  order_url TEXT,
  order_secret_id TEXT REFERENCES secrets (id),
  -- The next attempt or the renewal.
  next_at BIGINT NOT NULL,
  -- Failed attempts since the last success, and the last one.
  failures BIGINT NOT NULL,
  error_kind TEXT,
  error_message TEXT,
  error_at BIGINT,
  -- The authority's window for the renewal, and the next request for it.
  window_start BIGINT,
  window_end BIGINT,
  window_ask_at BIGINT,
  created_at BIGINT NOT NULL,
  -- Of the settings: progress does not count.
  version BIGINT NOT NULL,
  UNIQUE (project_id, name)
);
CREATE INDEX managed_certificates_by_project ON managed_certificates (project_id, id);
CREATE INDEX managed_certificates_by_org ON managed_certificates (org_id);
CREATE INDEX managed_certificates_by_certificate ON managed_certificates (certificate_id);
CREATE INDEX managed_certificates_by_secret ON managed_certificates (order_secret_id);
CREATE INDEX managed_certificates_due ON managed_certificates (next_at);

-- Validations that are under way, for each node that serves the host.
CREATE TABLE acme_challenges (
  node_id TEXT NOT NULL REFERENCES nodes (id) ON DELETE CASCADE,
  token TEXT NOT NULL,
  managed_certificate_id TEXT NOT NULL REFERENCES managed_certificates (id) ON DELETE CASCADE,
  project_id TEXT NOT NULL,
  host TEXT NOT NULL,
  key_authorization TEXT NOT NULL,
  -- The entry of the audit log that announces it.
  seq BIGINT NOT NULL,
  -- 1 once the node has said that it answers.
  confirmed BIGINT NOT NULL CHECK (confirmed IN (0, 1)),
  PRIMARY KEY (node_id, token)
);
CREATE INDEX acme_challenges_by_certificate ON acme_challenges (managed_certificate_id);
CREATE INDEX acme_challenges_by_project ON acme_challenges (project_id);
CREATE INDEX acme_challenges_by_seq ON acme_challenges (seq);
