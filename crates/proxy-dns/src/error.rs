//! Errors of look-ups.

use hickory_resolver::net::NetError;
use proxy_model::PeerFault;
use std::time::Duration;

/// The reason why a name has no addresses.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LookUpError {
    /// The name does not exist, or has no records of the kind.
    #[error("no such name, or it has no address")]
    NoRecords,
    /// The SRV records state that the service does not exist here.
    #[error("the service does not exist")]
    NoService,
    /// No name server is configured, or `/etc/resolv.conf` cannot be read.
    #[error("no name server: {0}")]
    NoNameServer(String),
    /// No name server has answered within its part of the time.
    #[error("no answer")]
    Silent,
    /// No name server has answered in time.
    #[error("no answer within {0:?}")]
    TimedOut(Duration),
    /// Every address is one that the configuration's upstreams may not have.
    #[error("{0}")]
    Refused(PeerFault),
    /// The name servers refused, failed, or sent nonsense.
    #[error("{0}")]
    Failed(String),
}

impl LookUpError {
    /// Returns true if the answer was that there are no records.
    #[must_use]
    pub const fn is_negative(&self) -> bool {
        matches!(self, Self::NoRecords | Self::NoService)
    }
}

impl From<NetError> for LookUpError {
    fn from(error: NetError) -> Self {
        if error.is_no_records_found() || error.is_nx_domain() {
            Self::NoRecords
        } else if matches!(error, NetError::Timeout) {
            Self::Silent
        } else {
            Self::Failed(error.to_string())
        }
    }
}
