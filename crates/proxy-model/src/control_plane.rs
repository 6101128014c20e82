//! The control plane that a node follows.

use crate::address::BindAddress;
use crate::place::{Place, Setting};
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

/// The `control-plane` block.
#[derive(Clone, Debug)]
pub struct ControlPlane {
    /// Place of the block.
    pub place: Place,
    /// Base URL of the control plane.
    pub url: Setting<String>,
    /// True if `url` may be `http` off loopback.
    pub allow_plain_http: Setting<bool>,
    /// The project to enrol in; needed until the node has an identity.
    pub project: Option<Setting<String>>,
    /// The file with an enrolment token; needed until the node has an identity.
    pub enrolment_token_file: Option<Setting<PathBuf>>,
    /// The folder in which the node stores its identity and bundles.
    pub data_dir: Setting<PathBuf>,
    /// The key that seals private keys in the folder; `None` for one in the folder.
    pub machine_key_file: Option<Setting<PathBuf>>,
    /// Root certificates for the control plane's certificate; `None` for the system's.
    pub ca_file: Option<Setting<PathBuf>>,
    /// The node's name; `None` for the host's.
    pub node_name: Option<Setting<String>>,
    /// The node's labels, given at its enrolment.
    pub labels: Vec<Setting<Label>>,
    /// The parts of the machine that bundles may use. Read at each reload.
    pub allow: Allow,
}

/// The `allow` block: the parts of the machine that bundles may use.
#[derive(Clone, Debug, Default)]
pub struct Allow {
    /// Folders outside of the bundle with static files.
    pub static_roots: Vec<Setting<NamedPath>>,
    /// Sockets of agents, by the agent's name.
    pub agents: Vec<Setting<NamedPath>>,
    /// Addresses of listeners beyond TCP ports above 1023.
    pub listeners: Vec<Setting<BindAddress>>,
    /// Servers of shared rate limits, as host and port.
    pub rate_limit_stores: Vec<Setting<String>>,
    /// Folders for certificates that listeners obtain by ACME.
    pub acme_storages: Vec<Setting<NamedPath>>,
    /// Programs that publish records for ACME.
    pub dns_commands: Vec<Setting<NamedPath>>,
    /// True if targets may have loopback addresses.
    pub upstreams_on_loopback: Setting<bool>,
}

/// A path under the name that a bundle has for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedPath {
    /// The name in bundles.
    pub name: String,
    /// The path on this machine.
    pub path: PathBuf,
}

impl ControlPlane {
    /// Returns true if both have equal settings, regardless of their places.
    #[must_use]
    pub fn says_the_same(&self, other: &Self) -> bool {
        let Self {
            place: _,
            url,
            allow_plain_http,
            project,
            enrolment_token_file,
            data_dir,
            machine_key_file,
            ca_file,
            node_name,
            labels,
            allow: _, // In force at once.
        } = self;
        url.value == other.url.value
            && allow_plain_http.value == other.allow_plain_http.value
            && value(project.as_ref()) == value(other.project.as_ref())
            && value(enrolment_token_file.as_ref()) == value(other.enrolment_token_file.as_ref())
            && data_dir.value == other.data_dir.value
            && value(machine_key_file.as_ref()) == value(other.machine_key_file.as_ref())
            && value(ca_file.as_ref()) == value(other.ca_file.as_ref())
            && value(node_name.as_ref()) == value(other.node_name.as_ref())
            && labels
                .iter()
                .map(|label| &label.value)
                .eq(other.labels.iter().map(|label| &label.value))
    }
}

/// Returns true if requests to the base URL cross a network without TLS: it is `http`, and its host
/// neither `localhost` nor a loopback address.
#[must_use]
pub fn is_plain_off_loopback(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("http://") else {
        return false;
    };
    let authority = rest.split('/').next().unwrap_or_default();
    let host = match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.split(':').next().unwrap_or_default(),
    };
    let is_loopback = host.parse::<IpAddr>().map_or_else(
        |_| host.eq_ignore_ascii_case("localhost"),
        |address| address.is_loopback(),
    );
    !is_loopback
}

fn value<T>(setting: Option<&Setting<T>>) -> Option<&T> {
    setting.map(|setting| &setting.value)
}

/// A label of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Name of the label.
    pub name: String,
    /// Value of the label; may be empty.
    pub value: String,
}

impl fmt::Display for NamedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.path.display())
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::is_plain_off_loopback;

    #[test]
    fn only_http_to_another_machine_is_plain() {
        for (url, plain) in [
            ("https://control.example", false),
            ("http://control.example:8443/a", true),
            ("http://10.0.0.1", true),
            ("http://127.0.0.1:8443", false),
            ("http://127.9.9.9", false),
            ("http://[::1]:8443/a", false),
            ("http://[2001:db8::1]:8443", true),
            ("http://LocalHost:1", false),
            ("http://localhost.example", true),
            ("http://127.0.0.1.example", true),
        ] {
            assert_eq!(is_plain_off_loopback(url), plain, "{url}");
        }
    }
}
