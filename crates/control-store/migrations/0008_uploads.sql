-- Archives whose bundles are not in the database yet: one that stays here was left behind.
CREATE TABLE uploads (
  bundle_id TEXT PRIMARY KEY,
  org_id TEXT NOT NULL,
  -- SHA-256 of the archive, Base64-URL, as in its bundle.
  digest TEXT NOT NULL,
  -- The name in the object store.
  object TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  -- Whether the object is about to be deleted: nothing may rely on it any more.
  sweeping BIGINT NOT NULL DEFAULT 0 CHECK (sweeping IN (0, 1))
);
CREATE INDEX uploads_by_age ON uploads (created_at, bundle_id);
CREATE INDEX uploads_by_object ON uploads (object);
CREATE INDEX bundles_by_digest ON bundles (org_id, digest);
