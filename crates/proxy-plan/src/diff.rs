//! The difference between two plans: requests answered by another route or service, and other
//! changes.
//!
//! The conditions of both plans divide all requests into cells.
//! [`Plan::decide`](crate::Plan::decide) of both plans answers one request of each cell. Hosts,
//! exact paths, prefixes, methods, headers and query parameters divide requests exactly; a
//! `path-regex` is represented by a sample of its paths.

mod answer;
mod cells;
mod compare;
mod draining;
mod files;
mod merge;
mod parts;
mod plan_diff;
mod region;
mod relative_path;
pub mod replay;
mod risk;
mod rows;
mod search;
mod setting_change;
mod survey;

pub use answer::{Answer, AnsweringService};
pub(crate) use cells::conditions::shown_header;
pub use cells::conditions::{Field, FieldState, FieldStates};
pub use cells::hosts::HostCell;
pub use cells::paths::PathCell;
pub use draining::{Drained, DrainedConnections};
pub use files::{ChangedFile, NamedBy, named_files};
pub use parts::{Change, Part, PartChange};
pub use plan_diff::PlanDiff;
pub use region::Region;
pub use risk::Risk;
pub use risk::class::{RiskClass, risks_page};
pub use search::DiffLimit;
pub use setting_change::{SettingChange, SettingOwner};
pub(crate) use survey::{SurveyedRequest, survey};
