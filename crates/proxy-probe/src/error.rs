//! Error of a health check.

use http::StatusCode;
use std::io;
use std::ops::RangeInclusive;

/// The reason why a target does not pass its check.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The settings are of a check without a document.
    #[error("the check fetches no document")]
    NoDocument,
    /// The target is a name without an address.
    #[error("its name has no address")]
    NoAddress,
    /// No connection, or none with TLS.
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    /// Longer than the timeout.
    #[error("no answer in time")]
    TimedOut,
    /// No whole response.
    #[error("no answer: {0}")]
    Exchange(#[from] hyper::Error),
    /// The path or host of the check is invalid.
    #[error("the request cannot be built: {0}")]
    Request(#[from] http::Error),
    /// Another status.
    #[error("answered with status {status}, not {}", shown(.expected))]
    Status {
        /// The status of the answer.
        status: StatusCode,
        /// The statuses of a healthy target.
        expected: RangeInclusive<u16>,
    },
    /// The body is too long or incomplete.
    #[error("the answer's body is too long or breaks off: {0}")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The body is not a list of models.
    #[error("the list of models is not understood")]
    NotModels,
    /// A model that is not in the list.
    #[error("the model {0} is missing")]
    MissingModel(String),
    /// Another status of gRPC.
    #[error("gRPC status {0}")]
    GrpcStatus(String),
    /// Another state of the gRPC health service.
    #[error("the gRPC health service does not say SERVING")]
    NotServing,
}

/// A range of statuses as `expected-status` has it.
fn shown(expected: &RangeInclusive<u16>) -> String {
    let (first, last) = (expected.start(), expected.end());
    if first == last {
        return first.to_string();
    }
    format!("{first}-{last}")
}
