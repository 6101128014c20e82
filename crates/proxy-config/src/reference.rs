//! Reference pages generated from the registry and from the list of diagnostic codes.

mod config;
mod diagnostics;
mod schema;

pub use config::config_md;
pub use diagnostics::faults_md;
pub use schema::schema_json;
