-- The number in the organization's own log, from 1: that of the whole log would tell how much others do.
ALTER TABLE audit ADD COLUMN org_seq BIGINT;
UPDATE audit SET org_seq = n.number FROM (
    SELECT seq, ROW_NUMBER() OVER (PARTITION BY org_id ORDER BY seq) AS number FROM audit
    WHERE org_id IS NOT NULL) n
  WHERE n.seq = audit.seq;
CREATE UNIQUE INDEX audit_by_org_seq ON audit (org_id, org_seq);
-- Entries of a replica of an older version, until the next one of the organization numbers them.
CREATE INDEX audit_unnumbered ON audit (org_id, seq) WHERE org_seq IS NULL AND org_id IS NOT NULL;
-- The actor as it was called then, and the address of the client; NULL before, and where there is none.
ALTER TABLE audit ADD COLUMN actor_name TEXT;
ALTER TABLE audit ADD COLUMN client_ip TEXT;
-- JSON of what changed.
ALTER TABLE audit ADD COLUMN value_before TEXT;
ALTER TABLE audit ADD COLUMN value_after TEXT;
-- Whether `hash` is an HMAC by the audit key. Those before are plain hashes, which the first HMAC covers.
ALTER TABLE audit ADD COLUMN keyed BIGINT NOT NULL DEFAULT 0 CHECK (keyed IN (0, 1));
