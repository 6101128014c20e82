//! Number and duration of samples.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Rounds and durations of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// Sampling for differences of ten percent.
    pub(crate) usual: Sampling,
    /// Sampling for differences of one percent.
    pub(crate) fine: Sampling,
    /// Maximum number of repetitions of an invalid sample.
    pub(crate) repeats: u32,
    /// Idle time of connections before memory is measured. `proxyd` frees their buffers after two
    /// seconds, its peers at once.
    pub(crate) settle: Duration,
    /// Number of rounds of cases that start a process for each sample.
    pub(crate) fresh_rounds: u32,
}

/// Sampling of a case. All servers are measured in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sampling {
    /// Number of samples per server.
    pub(crate) rounds: u32,
    /// Time of load before a measurement.
    pub(crate) warm: Duration,
    /// Duration of a measurement.
    pub(crate) span: Duration,
}

impl Effort {
    /// Effort for published figures. Many short rounds are better than few long ones: disturbances
    /// last for seconds, so they affect all samples of a round equally.
    pub(crate) const FULL: Self = Self {
        usual: Sampling {
            rounds: 15,
            warm: Duration::from_millis(300),
            span: Duration::from_millis(900),
        },
        fine: Sampling {
            rounds: 240,
            warm: Duration::from_millis(60),
            span: Duration::from_millis(120),
        },
        repeats: 3,
        settle: Duration::from_secs(5),
        fresh_rounds: 3,
    };
    /// Effort that detects only large regressions.
    pub(crate) const QUICK: Self = Self {
        usual: Sampling {
            rounds: 1,
            warm: Duration::from_millis(60),
            span: Duration::from_millis(240),
        },
        fine: Sampling {
            rounds: 2,
            warm: Duration::from_millis(60),
            span: Duration::from_millis(120),
        },
        repeats: 1,
        settle: Duration::from_millis(2_700),
        fresh_rounds: 1,
    };
}
