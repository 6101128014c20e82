//! Address of the control plane, and identity of the node.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The settings of the `control-plane` block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Base URL, such as `https://control.example.com`.
    pub url: String,
    /// The project to enrol in, as the identifier in the API's paths.
    pub project: Option<String>,
    /// The file with the enrolment token; read at the time of the enrolment.
    pub enrolment_token_file: Option<PathBuf>,
    /// The folder for identity, state and bundles.
    pub data_dir: PathBuf,
    /// The key that seals private keys on the disk, 32 bytes; `None` for one in `data_dir`.
    pub machine_key_file: Option<PathBuf>,
    /// Root certificates for the control plane's certificate; `None` for the system's.
    pub ca_file: Option<PathBuf>,
    /// The node's name in its project.
    pub name: String,
    /// The node's labels, given at its enrolment.
    pub labels: BTreeMap<String, String>,
    /// The version of the proxy.
    pub version: &'static str,
    /// The version of the configuration's language that the proxy reads.
    pub schema_version: u32,
}
