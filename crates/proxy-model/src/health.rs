//! How targets are asked whether they are well.

use crate::place::{Place, Setting};
use std::time::Duration;

/// A health check of an upstream's targets.
#[derive(Clone, Debug)]
pub struct HealthCheck {
    /// Its block.
    pub place: Place,
    /// What is asked.
    pub kind: HealthCheckKind,
    /// From one question to the next.
    pub interval: Setting<Duration>,
    /// How long an answer may take.
    pub timeout: Setting<Duration>,
    /// Consecutive good answers that make a target healthy.
    pub healthy_threshold: Setting<u32>,
    /// Consecutive bad answers that make it unhealthy.
    pub unhealthy_threshold: Setting<u32>,
}

/// A health check's `type`, before its own settings are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum HealthCheckType {
    /// A GET.
    Http,
    /// A connection.
    Tcp,
    /// The gRPC health protocol.
    Grpc,
    /// A model server's list of models.
    Inference,
}

/// What a health check asks.
#[derive(Clone, Debug)]
pub enum HealthCheckKind {
    /// A GET.
    Http {
        /// The path.
        path: Setting<String>,
        /// The status that is good.
        expected_status: Setting<u16>,
        /// The `Host` sent; none sends the target's address.
        host: Option<Setting<String>>,
    },
    /// A connection.
    Tcp,
    /// The gRPC health protocol.
    Grpc {
        /// The service asked about; none asks about the server as a whole.
        service: Option<Setting<String>>,
    },
    /// A model server's list of models.
    Inference {
        /// The path of the list.
        endpoint: Setting<String>,
        /// Models that must be in it; a name also stands for longer names that begin with it.
        expected_models: Vec<Setting<String>>,
    },
}
