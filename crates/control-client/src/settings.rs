//! Settings of the client: control plane, identity and files of the node.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Settings of the configuration block `control-plane`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Base URL, such as `https://control.example.com`.
    pub url: String,
    /// Project to enrol in, by its identifier.
    pub project: Option<String>,
    /// File with the enrolment token, read at enrolment.
    pub enrolment_token_file: Option<PathBuf>,
    /// Data folder for identity, state and bundles.
    pub data_dir: PathBuf,
    /// File with the 32-byte key that seals private keys on the disk; `None` for a generated key in
    /// `data_dir`.
    pub machine_key_file: Option<PathBuf>,
    /// File with root certificates for the control plane; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// Name of the node, unique in its project.
    pub name: String,
    /// Labels that the node requests at enrolment.
    pub labels: BTreeMap<String, String>,
    /// Version of the proxy.
    pub version: &'static str,
    /// Newest version of the configuration language that the proxy reads.
    pub schema_version: u32,
}
