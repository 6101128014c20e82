//! The registry of all settings: name, kind, range, default, meaning, and the crate that enforces
//! it.
//!
//! These rows are the single source: the decoder takes ranges and defaults from them, the reference
//! page and the schema are generated from them, and each names the test that proves its effect.

mod all;
mod kind;
mod number;
mod spec;
mod table;
mod text;
mod value_error;
mod word;

pub mod admin;
pub mod agents;
pub mod circuit_breaker;
pub mod config_tests;
pub mod control_plane;
pub mod health_check;
pub mod limits;
pub mod listener_tls;
pub mod listeners;
pub mod matches;
pub mod observability;
pub mod outlier_detection;
pub mod policies;
pub mod routes;
pub mod system;
pub mod top;
pub mod upstreams;

pub use crate::size::show_size;
pub use all::all;
pub use kind::{Block, Kind, Pair, Shape, Shaped, Word};
pub use number::{Decimal, Integer, Size, Time, WholeNumber};
pub use spec::{
    Absent, DefaultValue, MachinePart, Presence, Proof, Repeatable, Required, SettingSpec, Spec,
    Unset,
};
pub use text::{PageStatuses, Statuses, Text, Written};
pub use value_error::{Raw, ValueError};
pub use word::{Choice, ChoiceWord, Flag};
