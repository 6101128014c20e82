//! Active health checks.

use crate::place::{Place, Setting};
use std::time::Duration;

/// The active health check of an upstream's targets.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    /// Place of the block.
    pub place: Place,
    /// The probe and its settings.
    pub kind: HealthCheckKind,
    /// Interval between two probes of a target.
    pub interval: Setting<Duration>,
    /// Maximum time for a probe.
    pub timeout: Setting<Duration>,
    /// Consecutive successful probes that make a target healthy.
    pub healthy_threshold: Setting<u32>,
    /// Consecutive failed probes that make a target unhealthy.
    pub unhealthy_threshold: Setting<u32>,
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

/// The probe of a health check.
#[derive(Clone, Debug)]
pub enum HealthCheckKind {
    /// An HTTP GET.
    Http {
        /// Path of the request.
        path: Setting<String>,
        /// The status of a successful response.
        expected_status: Setting<u16>,
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
