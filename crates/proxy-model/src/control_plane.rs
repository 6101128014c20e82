//! The control plane that a node follows.

use crate::place::{Place, Setting};
use std::path::PathBuf;

/// The `control-plane` block.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    /// Place of the block.
    pub place: Place,
    /// Base URL of the control plane.
    pub url: Setting<String>,
    /// The project to enrol in; needed until the node has an identity.
    pub project: Option<Setting<String>>,
    /// The file with an enrolment token; needed until the node has an identity.
    pub enrolment_token_file: Option<Setting<PathBuf>>,
    /// The folder in which the node stores its identity and bundles.
    pub data_dir: Setting<PathBuf>,
    /// Roots for the control plane's certificate; `None` for those of the system.
    pub ca_file: Option<Setting<PathBuf>>,
    /// The node's name; `None` for the host's.
    pub node_name: Option<Setting<String>>,
    /// The node's labels, given at its enrolment.
    pub labels: Vec<Setting<Label>>,
}

/// A label of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Its name.
    pub name: String,
    /// Its value; may be empty.
    pub value: String,
}

impl std::fmt::Display for Label {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}
