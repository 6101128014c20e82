//! The difference between two plans: which requests are answered by another route or service, and what
//! else changes.
//!
//! Both plans answer through [`Plan::decide`](crate::Plan::decide), for one request of each cell into
//! which the conditions of both divide all requests. Hosts, exact paths, prefixes, methods, headers and
//! query parameters divide requests exactly; a `path-regex` is represented by a sample of its paths.

mod answer;
mod cells;
mod compare;
mod conditions;
mod draining;
mod hosts;
mod merge;
mod parts;
mod paths;
mod plan_diff;
mod region;
mod relative_path;
mod risk;
mod risk_class;
mod route_risks;
mod rows;
mod search;
mod setting_change;
mod setting_risks;
mod survey;

pub use answer::{Answer, AnsweringService};
pub(crate) use conditions::shown_header;
pub use conditions::{Field, FieldState, FieldStates};
pub use draining::{Drained, DrainedConnections};
pub use hosts::HostCell;
pub use parts::{Change, Part, PartChange};
pub use paths::PathCell;
pub use plan_diff::PlanDiff;
pub use region::Region;
pub use risk::Risk;
pub use risk_class::{RiskClass, risks_page};
pub use search::DiffLimit;
pub use setting_change::{SettingChange, SettingOwner};
pub(crate) use survey::{Surveyed, survey};
