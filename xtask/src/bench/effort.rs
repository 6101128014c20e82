//! How much is measured: how often, and how long each time.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Rounds and times of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Effort {
    /// Where tenths matter.
    pub(super) usual: Turns,
    /// Where hundredths do.
    pub(super) fine: Turns,
    /// How often a void sample is taken anew before it is left at that.
    pub(super) repeats: u32,
    /// How long idle connections rest before memory is read. proxyd lets go of their buffers
    /// after two seconds, its peers at once.
    pub(super) settle: Duration,
    /// Rounds of cases that start a process anew for each sample.
    pub(super) fresh_rounds: u32,
}

/// Samples of all servers, taken in turns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Turns {
    /// Samples of each server in each case.
    pub(super) rounds: u32,
    /// How long a proxy is driven before anything is measured.
    pub(super) warm: Duration,
    /// How long is measured.
    pub(super) span: Duration,
}

impl Effort {
    /// Enough for figures that may be published. Many short rounds, not few long ones: what the
    /// machine does besides lasts for seconds, and so strikes all samples of a round alike.
    pub(super) const FULL: Self = Self {
        usual: Turns {
            rounds: 15,
            warm: Duration::from_millis(300),
            span: Duration::from_millis(900),
        },
        fine: Turns {
            rounds: 240,
            warm: Duration::from_millis(60),
            span: Duration::from_millis(120),
        },
        repeats: 3,
        settle: Duration::from_secs(5),
        fresh_rounds: 3,
    };
    /// Enough to see that a change is no disaster.
    pub(super) const QUICK: Self = Self {
        usual: Turns {
            rounds: 1,
            warm: Duration::from_millis(60),
            span: Duration::from_millis(240),
        },
        fine: Turns {
            rounds: 2,
            warm: Duration::from_millis(60),
            span: Duration::from_millis(120),
        },
        repeats: 1,
        settle: Duration::from_millis(2_700),
        fresh_rounds: 1,
    };
}
