//! Error of a health check.

use http::StatusCode;
use std::io;
use std::ops::RangeInclusive;

/// Error of a health check.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CheckError {
    #[error("the check fetches no document")]
    NoDocument,
    #[error("its name has no address")]
    NoAddress,
    #[error("cannot connect: {0}")]
    Connect(#[source] io::Error),
    #[error("no answer in time")]
    TimedOut,
    #[error("no answer: {0}")]
    Exchange(#[from] hyper::Error),
    #[error("the request cannot be built: {0}")]
    Request(#[from] http::Error),
    #[error("answered with status {status}, not {}", shown(.expected))]
    Status {
        /// The status of the answer.
        status: StatusCode,
        /// The statuses of a healthy target.
        expected: RangeInclusive<u16>,
    },
    #[error("the answer's body is too long or breaks off: {0}")]
    Body(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the list of models is not understood")]
    NotModels,
    #[error("the model {0} is missing")]
    MissingModel(String),
    #[error("gRPC status {0}")]
    GrpcStatus(String),
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
