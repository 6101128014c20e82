-- Parts of the audit log that lie in the object store and are deleted here: without gaps, from entry 1.
CREATE TABLE audit_archives (
  last_seq BIGINT PRIMARY KEY,
  first_seq BIGINT NOT NULL,
  -- The link of the last entry: the chain of the entries that are left begins with it.
  last_hash TEXT NOT NULL,
  -- The first entry of the chain with an HMAC, its time, and the newest time of such entries; NULL before there is one.
  keyed_seq BIGINT,
  keyed_since BIGINT,
  keyed_until BIGINT,
  -- The name in the object store, and the SHA-256 of its bytes in Base64-URL.
  object TEXT NOT NULL,
  digest TEXT NOT NULL,
  -- HMAC of the columns above by the audit key: without it, no beginning of the log can be cut off.
  mac TEXT NOT NULL,
  archived_at BIGINT NOT NULL
);
-- The number of the newest deleted entry in the log of each organization; the next entry goes on after it.
CREATE TABLE audit_org_cuts (
  org_id TEXT PRIMARY KEY,
  org_seq BIGINT NOT NULL
);
