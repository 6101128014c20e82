//! Routing: finds the route of a request and explains the choice.
//!
//! [`Router::find`] reads no clock, does not allocate, and does not scan all rules: they are
//! indexed by host, then by path, then by further conditions.

mod byte_set;
mod head;
mod host;
mod path;

mod host_pattern;
mod path_pattern;
mod pattern_error;
mod rule;

mod index;
mod rank;
mod router;

mod explain;

pub use explain::condition::{ConditionKind, Unmet};
pub use explain::nearest::Nearest;
pub use explain::overlap::{NarrowerLoser, Reordered};
pub use explain::{Explanation, Lost};
pub use head::Head;
pub use host::{Host, HostError, normal_host};
pub use host_pattern::HostPattern;
pub use path::readings::{Readings, is_plain_path};
pub use path::{PathError, canonical_path, forgiving_path};
pub use path_pattern::regex_prefix::regex_is_a_prefix;
pub use path_pattern::{PathPattern, RegexBudget};
pub use pattern_error::PatternError;
pub use rank::DecidingRank;
pub use router::Router;
pub use router::search::Work;
pub use rule::header_condition::HeaderCondition;
pub use rule::query_condition::QueryCondition;
pub use rule::{DEFAULT_PRIORITY, Rule};
