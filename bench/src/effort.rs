//! Number and length of the samples.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Rounds and times of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effort {
    /// For differences of tenths.
    pub(crate) usual: Sampling,
    /// For differences of hundredths.
    pub(crate) fine: Sampling,
    /// Number of repetitions of a void sample.
    pub(crate) repeats: u32,
    /// Time that idle connections rest before memory is measured. proxyd frees their buffers after
    /// two seconds, its peers at once.
    pub(crate) settle: Duration,
    /// Rounds of cases with a fresh process for each sample.
    pub(crate) fresh_rounds: u32,
}

/// Samples of all servers, in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sampling {
    /// Samples of each server in each case.
    pub(crate) rounds: u32,
    /// Time of load before the measurement.
    pub(crate) warm: Duration,
    /// Time of the measurement.
    pub(crate) span: Duration,
}

impl Effort {
    /// For figures to be published. Many short rounds instead of few long ones, because
    /// disturbances last for seconds and so affect all samples of a round equally.
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
    /// For detecting large regressions.
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
