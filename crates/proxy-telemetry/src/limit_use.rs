//! The use of the limits of the `limits` block.

use crate::limit_setting::LimitSetting;
use crate::snapshot::Snapshot;
use serde_json::{Value, json};
use std::fmt::{self, Debug};

/// A quantity that is limited, in the unit of its setting.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A number, or bytes.
    Count(u64),
    /// A ratio or a percentage.
    Decimal(f64),
}

/// The use of one limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LimitUse {
    /// The setting.
    pub setting: LimitSetting,
    /// Use now: of the one with the most, for a limit on each client, route, worker, agent or target. `None` for a
    /// limit on each single request, and for a rate.
    pub current: Option<Quantity>,
    /// The maximum; `None` if unlimited.
    pub maximum: Option<Quantity>,
}

/// Knows how much of each limit is in use, and is asked at each scrape.
pub trait LimitSource: Debug + Send + Sync {
    /// The use of every limit, at the time of `snapshot`.
    fn uses(&self, snapshot: &Snapshot) -> Vec<LimitUse>;
}

impl Quantity {
    pub(crate) fn json(self) -> Value {
        match self {
            Self::Count(count) => json!(count),
            Self::Decimal(number) => json!(number),
        }
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Decimal(number) => write!(f, "{number}"),
        }
    }
}
