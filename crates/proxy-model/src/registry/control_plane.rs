//! The `control-plane` block.

use super::number::Time;
use super::spec::{Given, Required, Unset};
use super::table::{file, settings, time, words, written};
use super::text::{Text, Written};
use std::path::PathBuf;
use std::time::Duration;

settings! {
    /// Base URL of the control plane.
    URL: Text<String>, Required =
        words("control-plane.url", "a URL", "https://control.example.com").not_yet("control-plane");
    /// The node's id, assigned at registration.
    NODE_ID: Text<String>, Unset =
        words("control-plane.node-id", "a node's id", "01890a5d-ac96-774b-bcce-b302099a8057")
            .optional("the id in `data-dir`, or a registration")
            .not_yet("control-plane");
    /// The file with the node key.
    NODE_KEY_FILE: Text<PathBuf>, Unset = file("control-plane.node-key-file", "a file", "node.key")
        .optional("the key in `data-dir`, or a registration")
        .not_yet("control-plane");
    /// The file with an enrolment token, used once, while there is no node key.
    ENROLMENT_TOKEN_FILE: Text<PathBuf>, Unset =
        file("control-plane.enrolment-token-file", "a file", "enrolment.token")
            .optional("there must be a node key")
            .not_yet("control-plane");
    /// The folder in which the node stores keys and bundles.
    DATA_DIR: Text<PathBuf>, Given<Written<PathBuf>> =
        file("control-plane.data-dir", "a folder", "/var/lib/proxyd")
            .or(written("/var/lib/proxyd", || "/var/lib/proxyd".into()))
            .not_yet("control-plane");
    /// Interval between heartbeats.
    HEARTBEAT_INTERVAL: Time, Given<Duration> =
        time("control-plane.heartbeat-interval-secs", Duration::from_hours(1))
            .or(Duration::from_secs(30))
            .not_yet("control-plane");
}
