//! Settings of a probe: its check and its interval.

use proxy_health::CheckTiming;
use proxy_tls::ClientTls;
use rustls_pki_types::ServerName;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The check of one target, and its interval.
#[derive(Clone, Debug)]
pub struct ProbeSettings {
    /// Request that is sent, and the expected response.
    pub check: Check,
    /// Interval and thresholds.
    pub timing: CheckTiming,
    /// The target's address as it is written: the `Host` of requests without another.
    pub authority: Arc<str>,
    /// TLS towards the target, and the name its certificate must carry; none is plaintext.
    pub tls: Option<(Arc<ClientTls>, ServerName<'static>)>,
    /// True if the target uses HTTP/2.
    pub http2: bool,
    /// The PROXY protocol header that a connection begins with; `None` for a target without one.
    pub proxy_header: Option<Arc<[u8]>>,
}

impl ProbeSettings {
    /// Returns true if a check under `other` settings is the same, with the same interval.
    #[must_use]
    pub fn sends_the_same(&self, other: &Self) -> bool {
        let Self {
            check,
            timing,
            authority,
            tls,
            http2,
            proxy_header,
        } = self;
        let is_same_tls = match (tls, &other.tls) {
            (None, None) => true,
            (Some((tls, name)), Some((other, other_name))) => {
                Arc::ptr_eq(tls, other) && name == other_name
            }
            (Some(_), None) | (None, Some(_)) => false,
        };
        is_same_tls
            && *check == other.check
            && *timing == other.timing
            && *authority == other.authority
            && *http2 == other.http2
            && *proxy_header == other.proxy_header
    }
}

/// The kind of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Check {
    /// A connection, with TLS where the upstream has it.
    Tcp,
    /// A GET.
    Http {
        /// Path with an optional query.
        path: String,
        /// The statuses that are good.
        expected: RangeInclusive<u16>,
        /// The `Host`; none sends the target's address.
        host: Option<String>,
    },
    /// An `OPTIONS *`, which is of no resource: any answer is good, whatever its status. By HTTP/1.1 alone.
    Answer,
    /// The gRPC health protocol, over HTTP/2.
    Grpc {
        /// The service to check; empty for the server as a whole.
        service: String,
    },
    /// A GET of a model server's list of models.
    Inference {
        /// The path of the list.
        endpoint: String,
        /// Required models; a name is also a prefix of longer names.
        expected_models: Vec<String>,
    },
}
