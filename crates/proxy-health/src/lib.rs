//! Health of targets: checks, outlier detection, circuit breakers.
//!
//! State machines without a clock, a socket or a lock: results and times are arguments, verdicts
//! are return values. State shared by threads is one atomic word each.

mod breaker;
mod cause;
mod check;
mod connect_backoff;
mod outlier;
mod recent_results;

pub use breaker::{
    BREAKER_TRANSITIONS, BreakerCondition, BreakerEvent, BreakerOpen, BreakerPermit,
    BreakerSettings, BreakerState, BreakerTransition, CircuitBreaker, breaker_reference_page,
};
pub use cause::{CauseChange, HealthCause, HealthCauses, HealthFlags};
pub use check::{CheckProfile, CheckState, CheckTiming, OUTAGE_INTERVAL, Thresholds, Verdict};
pub use connect_backoff::{ConnectBackoff, FIRST_PERIOD, LONGEST_PERIOD};
pub use outlier::{OutlierSettings, OutlierState};
pub use recent_results::{RECENT_RESULTS, RecentResults};
