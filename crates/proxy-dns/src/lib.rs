//! Resolution of targets that are written by name.

mod client;
mod error;
mod families;
mod name_resolver;
mod service;
mod settings;
mod system_files;

pub use client::LookUp;
pub use error::LookUpError;
pub use name_resolver::{Answer, NameResolver};
pub use settings::ResolverSettings;
