//! The control plane that a node follows.

use crate::place::{Place, Setting};
use std::path::PathBuf;
use std::time::Duration;

/// The `control-plane` block.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    /// Its block.
    pub place: Place,
    /// Base URL of the control plane.
    pub url: Setting<String>,
    /// This node's id, as registration gave it.
    pub node_id: Option<Setting<String>>,
    /// The file that holds the node key.
    pub node_key_file: Option<Setting<PathBuf>>,
    /// The file that holds an enrolment token, used once when there is no node key yet.
    pub enrolment_token_file: Option<Setting<PathBuf>>,
    /// The folder for keys and bundles.
    pub data_dir: Setting<PathBuf>,
    /// From one heartbeat to the next.
    pub heartbeat_interval: Setting<Duration>,
}
