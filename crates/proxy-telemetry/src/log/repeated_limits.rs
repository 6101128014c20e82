//! Suppression of repeated limit records: a flood of one kind writes only a few.

use super::repetitions::{Repeated, Repetitions, Windows};
use crate::record::LimitRecord;
use proxy_errors::LimitType;
use std::net::IpAddr;
use std::time::Duration;

/// Limit records that repeat each other: of one limit and one client. Clients beyond the first 256
/// at once are counted together.
#[derive(Debug, Default)]
pub(crate) struct RepeatedLimits {
    by_client: Repetitions<LimitKind, OmittedRecord>,
    by_limit: Repetitions<LimitKind, OmittedRecord>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct LimitKind {
    limit_type: Option<LimitType>,
    setting: Option<&'static str>,
    /// `None` where clients are counted together.
    client_ip: Option<IpAddr>,
}

/// The last record that was not written.
#[derive(Debug)]
struct OmittedRecord {
    at: Duration,
    message: String,
    limit: u64,
    actual: u64,
    client_ip: IpAddr,
}

impl RepeatedLimits {
    /// Returns true if `record` is to be written; otherwise it is counted.
    pub(crate) fn admit(&mut self, record: &LimitRecord<'_>) -> bool {
        let mut kind = LimitKind {
            limit_type: record.limit_type,
            setting: record.setting,
            client_ip: Some(record.client_ip),
        };
        let known = if self.by_client.has_room(&kind) {
            &mut self.by_client
        } else {
            kind.client_ip = None;
            &mut self.by_limit
        };
        known.admit(kind, record.at, || OmittedRecord {
            at: record.at,
            message: record.message.to_owned(),
            limit: record.limit,
            actual: record.actual,
            client_ip: record.client_ip,
        })
    }

    /// Calls `write` with a summary for each kind with repetitions in `windows` at `now`.
    pub(crate) fn sum_up(
        &mut self,
        now: Duration,
        windows: Windows,
        mut write: impl FnMut(&LimitRecord<'_>),
    ) {
        let ended = self.by_client.take(now, windows);
        let together = self.by_limit.take(now, windows);
        for Repeated { kind, last, count } in ended.into_iter().chain(together) {
            write(&LimitRecord {
                at: last.at,
                message: &last.message,
                repeated: count,
                limit_type: kind.limit_type,
                limit: last.limit,
                actual: last.actual,
                client_ip: last.client_ip,
                trace_id: None,
                correlation_id: None,
                setting: kind.setting,
            });
        }
    }
}
