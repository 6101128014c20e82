//! Routing: finds the route of a request and explains the choice.
//!
//! [`Router::find`] reads no clock, does not allocate, and does not scan all rules: they are
//! indexed by host, then by path, then by further conditions.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod byte_set;
mod head;
mod host;
mod path;
mod readings;

mod header_condition;
mod host_pattern;
mod path_pattern;
mod pattern_error;
mod query_condition;
mod rule;

mod index;
mod rank;
mod router;
mod search;

mod condition;
mod explain;
mod nearest;
mod overlap;
mod regex_paths;
mod regex_prefix;
mod unreachable;

pub use condition::{ConditionKind, Unmet};
pub use explain::{Explanation, Lost};
pub use head::Head;
pub use header_condition::HeaderCondition;
pub use host::{Host, HostError, normal_host};
pub use host_pattern::HostPattern;
pub use nearest::Nearest;
pub use overlap::{NarrowerLoser, Reordered};
pub use path::{PathError, canonical_path, forgiving_path};
pub use path_pattern::{PathPattern, RegexBudget};
pub use pattern_error::PatternError;
pub use query_condition::QueryCondition;
pub use rank::Because;
pub use readings::{Readings, is_plain_path};
pub use regex_prefix::regex_is_a_prefix;
pub use router::Router;
pub use rule::{DEFAULT_PRIORITY, Rule};
pub use search::Work;
