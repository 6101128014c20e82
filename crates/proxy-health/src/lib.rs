//! Whether a target is well, and whether it may be called.
//!
//! State machines without a clock, a socket or a lock: results and times come in as arguments, and
//! verdicts go out. What several threads share is one atomic word each.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod breaker;
mod cause;
mod check;
mod outlier;
mod recent_results;

pub use breaker::{
    BREAKER_TRANSITIONS, BreakerCondition, BreakerEvent, BreakerOpen, BreakerPermit,
    BreakerSettings, BreakerState, BreakerTransition, CircuitBreaker, breaker_reference_page,
};
pub use cause::{CauseChange, HealthCause, HealthCauses, HealthFlags};
pub use check::{CheckProfile, CheckState, CheckTiming, Thresholds, Verdict};
pub use outlier::{OutlierSettings, OutlierState};
pub use recent_results::{RECENT_RESULTS, RecentResults};
