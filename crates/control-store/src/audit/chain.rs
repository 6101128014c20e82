//! The chain of links between audit entries, and its verification.

use crate::audit::entry::{Link, StoredEntry};
use control_auth::AuditKey;
use jiff::SignedDuration;

/// Number of entries read at once when the chain is verified.
pub(super) const CHUNK: i64 = 500;
/// Time for which replicas of a release without keys may still write unkeyed entries during an
/// upgrade.
const UPGRADE: SignedDuration = SignedDuration::from_hours(1);

/// Position in the chain: the last verified entry.
#[derive(Debug, Default)]
pub(super) struct Chain {
    /// Number of the entry; 0 before the first.
    pub(super) seq: i64,
    /// Link of the entry.
    pub(super) previous: String,
    pub(super) keyed: Option<Keyed>,
}

/// The part of the chain with HMACs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Keyed {
    /// Number of the first entry with an HMAC.
    pub(super) seq: i64,
    /// Time of that entry, in milliseconds since 1970.
    pub(super) since: i64,
    /// Latest time of the keyed entries, in milliseconds since 1970.
    pub(super) until: i64,
}

impl Chain {
    /// Advances to the next entry; returns true if it matches.
    pub(super) fn follow(&mut self, entry: &StoredEntry, key: Option<&AuditKey>) -> bool {
        let StoredEntry { seq, hash, columns } = entry;
        self.seq += 1;
        let link = match (columns.is_keyed, key) {
            (true, Some(key)) => Link::Keyed(key),
            (true, None) => return false,
            (false, _) if self.needs_key(columns.at) => return false,
            (false, _) => Link::Plain,
        };
        if columns.is_keyed {
            let (at, seq) = (columns.at, self.seq);
            let first = Keyed {
                seq,
                since: at,
                until: at,
            };
            let keyed = self.keyed.get_or_insert(first);
            keyed.until = keyed.until.max(at);
        }
        let expected = columns.link(self.seq, &self.previous, link);
        self.previous = expected;
        *seq == self.seq && *hash == self.previous
    }

    /// Returns true if an entry of the time `at` without an HMAC is a fault. For an hour after the
    /// first HMAC, replicas of the earlier release may add such entries to a log that they began. A
    /// log with an HMAC in its first entry has none.
    fn needs_key(&self, at: i64) -> bool {
        let limit = i64::try_from(UPGRADE.as_millis()).unwrap_or(i64::MAX);
        self.keyed.is_some_and(|keyed| {
            keyed.seq == 1 || limit < keyed.until.max(at).saturating_sub(keyed.since)
        })
    }
}
