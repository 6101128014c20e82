//! Verdicts of the gate.

use std::fmt;

/// Verdict of the gate on a batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// The batch is no worse than the rest.
    Passed,
    /// The batch is significantly worse.
    Failed(GateFailure),
    /// Too little data for a verdict.
    NoData(String),
}

/// Reason why a batch does not pass, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFailure {
    /// Too many 5xx responses.
    Errors(String),
    /// A reason of failure is more frequent than on the rest.
    NewReason(String),
    /// A status is more frequent than on the rest.
    Statuses(String),
    /// TLS handshakes fail, or no longer occur.
    Handshakes(String),
    /// The distribution of requests over routes has shifted.
    Mix(String),
    /// Responses are slower.
    Latency(String),
    /// Responses have other sizes.
    Size(String),
    /// Nodes use more CPU.
    Cpu(String),
    /// The external metric does not pass.
    Metric(String),
}

impl GateFailure {
    /// Returns true if waiting cannot change the verdict. Differences in speed and mix are not
    /// certain, because cold caches and reconnecting clients can cause them.
    pub fn is_certain(&self) -> bool {
        match self {
            Self::Errors(_) | Self::NewReason(_) | Self::Statuses(_) => true,
            Self::Handshakes(_)
            | Self::Mix(_)
            | Self::Latency(_)
            | Self::Size(_)
            | Self::Cpu(_)
            | Self::Metric(_) => false,
        }
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors(text)
            | Self::NewReason(text)
            | Self::Statuses(text)
            | Self::Handshakes(text)
            | Self::Mix(text)
            | Self::Latency(text)
            | Self::Size(text)
            | Self::Cpu(text)
            | Self::Metric(text) => f.write_str(text),
        }
    }
}
