//! The control plane that a node follows.

use crate::place::{Place, Setting};
use std::path::PathBuf;
use std::time::Duration;

/// The `control-plane` block.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    /// Place of the block.
    pub place: Place,
    /// Base URL of the control plane.
    pub url: Setting<String>,
    /// The node's id, assigned at registration.
    pub node_id: Option<Setting<String>>,
    /// The file with the node key.
    pub node_key_file: Option<Setting<PathBuf>>,
    /// The file with an enrolment token, used once, while there is no node key.
    pub enrolment_token_file: Option<Setting<PathBuf>>,
    /// The folder in which the node stores keys and bundles.
    pub data_dir: Setting<PathBuf>,
    /// Interval between heartbeats.
    pub heartbeat_interval: Setting<Duration>,
}
