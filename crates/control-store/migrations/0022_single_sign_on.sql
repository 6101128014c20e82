-- The connection of an organization to its identity provider.
CREATE TABLE sso_connections (
  org_id TEXT PRIMARY KEY REFERENCES orgs (id),
  -- JSON, without secrets.
  settings TEXT NOT NULL,
  -- The client's secret with OpenID Connect, the key that signs requests with SAML.
  secret_id TEXT NOT NULL REFERENCES secrets (id),
  created_at BIGINT NOT NULL,
  version BIGINT NOT NULL,
  -- The metadata of the identity provider that was read last, as JSON, and when.
  metadata TEXT,
  metadata_at BIGINT
);
CREATE INDEX sso_connections_by_secret ON sso_connections (secret_id);

-- Domains in whose names an organization may make users. The installation gives them.
CREATE TABLE org_domains (
  domain TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id)
);
CREATE INDEX org_domains_by_org ON org_domains (org_id);

-- Users by their names at identity providers.
CREATE TABLE identities (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id),
  issuer TEXT NOT NULL,
  subject TEXT NOT NULL,
  user_id TEXT NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  seen_at BIGINT NOT NULL,
  UNIQUE (org_id, issuer, subject)
);
CREATE INDEX identities_by_user ON identities (user_id, id);

-- Sign-ins that a browser began and whose answer is still to come, perhaps to another replica. A row is gone once its
-- answer came.
CREATE TABLE sign_in_attempts (
  -- The hash of `state` or `RelayState`.
  hash TEXT PRIMARY KEY,
  -- The hash of the cookie of the browser that began.
  browser_hash TEXT NOT NULL,
  org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
  -- JSON: nonce and PKCE verifier, or the ID of the request.
  contents TEXT NOT NULL,
  return_to TEXT NOT NULL,
  -- The user that links an identity.
  user_id TEXT REFERENCES users (id) ON DELETE CASCADE,
  ends_at BIGINT NOT NULL
);
CREATE INDEX sign_in_attempts_by_org ON sign_in_attempts (org_id);
CREATE INDEX sign_in_attempts_by_user ON sign_in_attempts (user_id);
CREATE INDEX sign_in_attempts_by_end ON sign_in_attempts (ends_at);

-- Verified SAML responses that wait for the browser that began. A row is gone once that browser came.
CREATE TABLE sign_in_tickets (
  hash TEXT PRIMARY KEY,
  browser_hash TEXT NOT NULL,
  org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
  -- JSON: the user as the identity provider asserts it.
  asserted TEXT NOT NULL,
  return_to TEXT NOT NULL,
  user_id TEXT REFERENCES users (id) ON DELETE CASCADE,
  ends_at BIGINT NOT NULL
);
CREATE INDEX sign_in_tickets_by_org ON sign_in_tickets (org_id);
CREATE INDEX sign_in_tickets_by_user ON sign_in_tickets (user_id);
CREATE INDEX sign_in_tickets_by_end ON sign_in_tickets (ends_at);

-- Assertions that were used, until they end. The hash is of issuer and ID.
CREATE TABLE used_assertions (
  org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
  hash TEXT NOT NULL,
  ends_at BIGINT NOT NULL,
  PRIMARY KEY (org_id, hash)
);
CREATE INDEX used_assertions_by_end ON used_assertions (ends_at);

-- The last sign-ins of a connection, for its administrators.
CREATE TABLE sso_sign_ins (
  id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL REFERENCES orgs (id) ON DELETE CASCADE,
  at BIGINT NOT NULL,
  -- The rule that broke; none if the user was signed in.
  refusal TEXT,
  subject TEXT,
  email TEXT,
  role TEXT,
  correlation_id TEXT NOT NULL
);
CREATE INDEX sso_sign_ins_by_org ON sso_sign_ins (org_id, id);
