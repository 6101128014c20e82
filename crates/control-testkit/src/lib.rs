//! Databases, an HTTP client and the real program, for tests of the control plane.

mod database;
mod http;
mod installed;
mod lock_waits;
mod nodes;
mod object_server;
mod oidc_provider;
mod old_schema;
mod postgres;
mod program;
mod refused_write;
mod saml_provider;
mod sbom;
mod slow_updates;
mod wait;

pub use database::{Database, databases};
pub use http::receiver::{Received, Receiver, empty};
pub use http::{Answer, Client};
pub use installed::installed;
pub use lock_waits::until_lock_wait;
pub use nodes::{Behaviour, NodeFleet};
pub use object_server::ObjectServer;
pub use oidc_provider::{OidcBehaviour, OidcProvider};
pub use old_schema::{lay_down, write_rows};
pub use postgres::Postgres;
pub use program::{Program, kill, lift_file_limit, refuse_file_writes};
pub use refused_write::RefusedWrite;
pub use saml_provider::{SamlAnswer, SamlProvider};
pub use sbom::check_cyclonedx;
pub use slow_updates::SlowUpdates;
pub use wait::{until, until_every};
