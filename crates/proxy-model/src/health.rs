//! Active health checks.

use crate::place::{Place, Setting};
use proxy_health::CheckProfile;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The active health check of an upstream's targets.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    /// Place of the block.
    pub place: Place,
    /// The probe and its settings.
    pub kind: HealthCheckKind,
    /// Source of the figures that are not written.
    pub profile: Setting<CheckProfile>,
    /// Interval between two probes of a target.
    pub interval: Setting<Duration>,
    /// Maximum time for a probe.
    pub timeout: Setting<Duration>,
    /// Consecutive successful probes that make a target healthy.
    pub healthy_threshold: Setting<u32>,
    /// Consecutive failed probes that make a target unhealthy.
    pub unhealthy_threshold: Setting<u32>,
}

/// Outlier detection: temporary ejection of targets by failed requests.
#[derive(Clone, Debug)]
pub struct OutlierDetection {
    /// Place of the block.
    pub place: Place,
    /// Consecutive failures; 0 counts none.
    pub consecutive_failures: Setting<u32>,
    /// Share of an interval's requests, in percent; `None` counts none.
    pub failure_percent: Option<Setting<u32>>,
    /// Minimum number of requests in an interval to judge their share.
    pub min_requests: Setting<u32>,
    /// Interval over which the share is counted.
    pub interval: Setting<Duration>,
    /// Duration of the first ejection.
    pub base_ejection: Setting<Duration>,
    /// Maximum duration of an ejection.
    pub max_ejection: Setting<Duration>,
    /// Maximum share of an upstream's targets ejected at once, in percent.
    pub max_ejected_percent: Setting<u32>,
}

/// The `type` of a health check, before its own settings are decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthCheckType {
    /// An HTTP GET.
    Http,
    /// A TCP connection.
    Tcp,
    /// The gRPC health protocol.
    Grpc,
    /// A GET of a model server's list of models.
    Inference,
}

/// An inclusive range of statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusRange {
    /// The lowest, 100 to 599.
    pub first: u16,
    /// The highest, not below the first and at most 599.
    pub last: u16,
}

impl FromStr for StatusRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let status = |text: &str| {
            let number: Option<u16> = text.parse().ok();
            number.filter(|number| (100..=599).contains(number))
        };
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (status(first), status(last)) {
            (Some(first), Some(last)) if first <= last => Ok(Self { first, last }),
            _ => Err("statuses are 100 to 599, as in `200` or `200-399`".to_owned()),
        }
    }
}

impl fmt::Display for StatusRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { first, last } = self;
        if first == last {
            return write!(f, "{first}");
        }
        write!(f, "{first}-{last}")
    }
}

/// The probe of a health check.
#[derive(Clone, Debug)]
pub enum HealthCheckKind {
    /// An HTTP GET.
    Http {
        /// Path of the request.
        path: Setting<String>,
        /// The status of a successful response.
        expected_status: Setting<StatusRange>,
        /// `Host` of the request; `None` sends the target's address.
        host: Option<Setting<String>>,
    },
    /// A TCP connection.
    Tcp,
    /// The gRPC health protocol.
    Grpc {
        /// The service in the request; `None` checks the server as a whole.
        service: Option<Setting<String>>,
    },
    /// A GET of a model server's list of models.
    Inference {
        /// Path of the list.
        endpoint: Setting<String>,
        /// Models that the list must contain; a name also matches longer names that begin with it.
        expected_models: Vec<Setting<String>>,
    },
}
