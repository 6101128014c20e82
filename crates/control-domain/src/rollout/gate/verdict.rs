//! The answer of a gate.

use std::fmt;

/// Verdict of the gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// The batch is as well as the rest.
    Passed,
    /// The batch is worse.
    Failed(GateFailure),
    /// There is too little data for a verdict.
    NoData(String),
}

/// Reason why a batch does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFailure {
    /// Too many answers with 5xx.
    Errors(String),
    /// A reason of failure that is less frequent on the rest.
    NewReason(String),
    /// A status that is less frequent on the rest.
    Statuses(String),
    /// TLS handshakes that fail or have ceased.
    Handshakes(String),
    /// Routes serve other parts of the requests.
    Mix(String),
    /// Too slow.
    Latency(String),
    /// Answers of another size.
    Size(String),
    /// Too much CPU.
    Cpu(String),
    /// A figure from outside that does not pass.
    Metric(String),
}

impl GateFailure {
    /// Returns true if waiting would not change it. Differences that cold caches and reconnecting
    /// clients cause are not certain.
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
