//! Reference pages generated from the registry and from the list of diagnostic codes.

mod aliases;
mod config;
mod diagnostics;
mod schema;

pub use aliases::{alias_places, aliases_md};
pub use config::config_md;
pub use diagnostics::faults_md;
pub use schema::schema_json;
