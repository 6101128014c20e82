//! Archives of old audit entries: an object in the object store, and a row that continues the
//! chain.
//!
//! The row contains the last archived entry's link and the archive's digest, authenticated with the
//! audit key. Without the key, neither can more of the log be cut off, nor an archive be replaced.

use crate::audit::chain::{CHUNK, Chain, Keyed};
use crate::audit::entry::{AuditColumns, StoredEntry};
use crate::error::StoreError;
use crate::row::{number, optional_number, text};
use crate::statement::sql;
use crate::store::Transaction;
use control_auth::{AuditKey, sha256};
use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use sqlx::any::AnyRow;
use std::io::{self, Write};
use zstd::stream::write::Encoder;

/// zstd's default level.
const LEVEL: i32 = 3;
/// Minimum time that the oldest entry is overdue before an archive is written: a quiet log gets at
/// most one a day.
const MIN_SPAN: SignedDuration = SignedDuration::from_hours(24);

/// An archived part of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditArchive {
    /// Number of the first archived entry in the whole log.
    pub first: i64,
    /// Number of the last archived entry.
    pub last: i64,
    /// Name in the object store.
    pub object: String,
    /// SHA-256 of the object, Base64-URL.
    pub digest: String,
    last_hash: String,
    keyed: Option<Keyed>,
}

/// A line of the archive: the columns of an entry's row, as JSON.
#[derive(Debug, Serialize)]
struct ArchivedEntry<'a> {
    seq: i64,
    #[serde(flatten)]
    columns: &'a AuditColumns,
    hash: &'a str,
}

impl Transaction {
    /// Packs the oldest entries before `before`, at most `limit`, as JSON lines compressed with
    /// zstd. `None` until the oldest entry is overdue by a day.
    ///
    /// # Errors
    ///
    /// [`StoreError::Corrupt`] if an entry breaks the chain: a log that was tampered with is not
    /// deleted.
    pub async fn expired_audit(
        &mut self,
        before: Timestamp,
        now: Timestamp,
        limit: i64,
        key: &AuditKey,
    ) -> Result<Option<(AuditArchive, Vec<u8>)>, StoreError> {
        let known = self.audit_archives().await?;
        let mut chain = after(&known, Some(key)).map_err(|_| StoreError::Corrupt("mac"))?;
        let first = chain.seq + 1;
        let (oldest, cutoff) = (before - MIN_SPAN, before.as_millisecond());
        let mut lines = Lines::new().map_err(|_| FAULT)?;
        'chunks: while chain.seq + 1 - first < limit {
            let rows = self.audit_after(chain.seq, CHUNK.min(limit)).await?;
            if rows.is_empty() {
                break;
            }
            for entry in &rows {
                let columns = &entry.columns;
                // A time in the future, from a clock that was ahead, must not block the later
                // entries.
                let is_expired = columns.at < cutoff || now.as_millisecond() < columns.at;
                let waits = entry.seq == first && oldest.as_millisecond() <= columns.at;
                if !is_expired || waits && columns.at < cutoff || limit <= chain.seq + 1 - first {
                    break 'chunks;
                }
                lines.write(entry).map_err(|_| FAULT)?;
                if !chain.follow(entry, Some(key)) {
                    return Err(StoreError::Corrupt("audit.hash"));
                }
            }
        }
        if chain.seq < first {
            return Ok(None);
        }
        let bytes = lines.finish().map_err(|_| FAULT)?;
        let archive = AuditArchive {
            first,
            last: chain.seq,
            object: format!("audit/{first:012}-{:012}.jsonl.zst", chain.seq),
            digest: sha256(&bytes),
            last_hash: chain.previous,
            keyed: chain.keyed,
        };
        Ok(Some((archive, bytes)))
    }

    /// Deletes the entries of an archive after its object was stored. Returns the number of deleted rows.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another replica archived these entries concurrently.
    pub async fn cut_audit(
        &mut self,
        archive: &AuditArchive,
        key: &AuditKey,
        now: Timestamp,
    ) -> Result<u64, StoreError> {
        let AuditArchive {
            first,
            last,
            object,
            digest,
            last_hash,
            keyed,
        } = archive;
        self.lock_audit().await?;
        let insert = "INSERT INTO audit_archives (last_seq, first_seq, last_hash, keyed_seq,
                        keyed_since, keyed_until, object, digest, mac, archived_at)
                      SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10
                      WHERE COALESCE((SELECT MAX(last_seq) FROM audit_archives), 0) + 1 = $2";
        let insert = sql(insert).bind(*last).bind(*first);
        let insert = insert.bind(last_hash.as_str());
        let insert = insert.bind(keyed.map(|keyed| keyed.seq));
        let insert = insert.bind(keyed.map(|keyed| keyed.since));
        let insert = insert.bind(keyed.map(|keyed| keyed.until));
        let insert = insert.bind(object.as_str()).bind(digest.as_str());
        let insert = insert.bind(key.authenticate(&archive.authenticated()));
        if insert.bind(now).run(self).await? == 0 {
            return Err(StoreError::Stale);
        }
        let note = "INSERT INTO audit_org_cuts (org_id, org_seq)
                    SELECT org_id, MAX(org_seq) FROM audit
                    WHERE seq <= $1 AND org_id IS NOT NULL AND org_seq IS NOT NULL GROUP BY org_id
                    ON CONFLICT (org_id) DO UPDATE SET org_seq = excluded.org_seq";
        sql(note).bind(*last).run(self).await?;
        let delete = sql("DELETE FROM audit WHERE seq <= $1");
        delete.bind(*last).run(self).await
    }

    /// The archives, oldest first.
    pub async fn audit_archives(&mut self) -> Result<Vec<(AuditArchive, String)>, StoreError> {
        let list = sql(
            "SELECT first_seq, last_seq, last_hash, keyed_seq, keyed_since, keyed_until,
                          object, digest, mac FROM audit_archives ORDER BY last_seq",
        );
        list.rows(self).await?.iter().map(read).collect()
    }

    /// Number of the newest archived entry in an organization's log; 0 without archives.
    pub(super) async fn archived_number(
        &mut self,
        org: control_wire::OrgId,
    ) -> Result<i64, StoreError> {
        let cut = sql("SELECT org_seq FROM audit_org_cuts WHERE org_id = $1").bind(org);
        let row = cut.row(self).await?;
        row.map_or(Ok(0), |row| number(&row, "org_seq"))
    }
}

/// Neither JSON nor compression fails in memory.
const FAULT: StoreError = StoreError::Corrupt("audit");

/// The chain after the newest archive, or the number of the first entry that is not proven to be
/// archived.
pub(super) fn after(
    archives: &[(AuditArchive, String)],
    key: Option<&AuditKey>,
) -> Result<Chain, i64> {
    let mut chain = Chain::default();
    for (archive, mac) in archives {
        let is_proven = key.is_some_and(|key| key.authenticate(&archive.authenticated()) == *mac);
        if !is_proven || archive.first != chain.seq + 1 {
            return Err(archive.first.min(chain.seq + 1));
        }
        chain = Chain {
            seq: archive.last,
            previous: archive.last_hash.clone(),
            keyed: archive.keyed,
        };
    }
    Ok(chain)
}

impl AuditArchive {
    /// The authenticated bytes: one value per line; no value contains a line feed.
    fn authenticated(&self) -> Vec<u8> {
        let Self {
            first,
            last,
            object,
            digest,
            last_hash,
            keyed,
        } = self;
        let keyed = keyed.map_or(String::new(), |keyed| {
            format!("{} {} {}", keyed.seq, keyed.since, keyed.until)
        });
        format!("audit archive v1\n{first}\n{last}\n{last_hash}\n{keyed}\n{object}\n{digest}\n")
            .into_bytes()
    }
}

/// A zstd encoder for JSON lines.
struct Lines(Encoder<'static, Vec<u8>>);

impl Lines {
    fn new() -> io::Result<Self> {
        Encoder::new(Vec::new(), LEVEL).map(Self)
    }

    fn write(&mut self, entry: &StoredEntry) -> io::Result<()> {
        let StoredEntry { seq, hash, columns } = entry;
        let line = ArchivedEntry {
            seq: *seq,
            columns,
            hash,
        };
        serde_json::to_writer(&mut self.0, &line)?;
        self.0.write_all(b"\n")
    }

    fn finish(self) -> io::Result<Vec<u8>> {
        self.0.finish()
    }
}

fn read(row: &AnyRow) -> Result<(AuditArchive, String), StoreError> {
    let keyed = match optional_number(row, "keyed_seq")? {
        None => None,
        Some(seq) => Some(Keyed {
            seq,
            since: number(row, "keyed_since")?,
            until: number(row, "keyed_until")?,
        }),
    };
    let archive = AuditArchive {
        first: number(row, "first_seq")?,
        last: number(row, "last_seq")?,
        object: text(row, "object")?,
        digest: text(row, "digest")?,
        last_hash: text(row, "last_hash")?,
        keyed,
    };
    Ok((archive, text(row, "mac")?))
}
