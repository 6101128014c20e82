//! Connections that a reload from one plan to the other ends.

use super::parts::{Change, Part, PartChange};
use super::setting_change::{SettingChange, SettingOwner};
use proxy_model::registry::{limits, listeners};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// Rows of a listener that apply to a connection from accept to close, except its TLS rows.
const CONNECTION_ROWS: [&str; 12] = [
    listeners::TRUSTED_PROXIES.path,
    listeners::H2C.path,
    listeners::PROXY_PROTOCOL.path,
    listeners::MAX_CONCURRENT_STREAMS.path,
    listeners::MAX_STREAM_RESETS.path,
    listeners::MAX_CONNECTION_AGE.path,
    listeners::MAX_REQUESTS_PER_CONNECTION.path,
    listeners::HEADER.path,
    listeners::BODY_IDLE.path,
    listeners::WRITE_IDLE.path,
    listeners::KEEP_ALIVE.path,
    listeners::HANDSHAKE.path,
];
/// Rows of `limits` that apply to a connection from accept to close.
const HEAD_ROWS: [&str; 4] = [
    limits::MAX_HEADER_SIZE.path,
    limits::MAX_HEADER_COUNT.path,
    limits::MAX_HEADER_NAME.path,
    limits::MAX_HEADER_VALUE.path,
];
/// Prefix of the rows of a listener's TLS.
const TLS_ROWS: &str = "listeners.listener.tls.";

/// Connections that end in a reload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DrainedConnections {
    /// Client connections of a retained listener: each closes after its current response.
    Listener(String),
    /// Client connections of a listener that is removed.
    RemovedListener(String),
    /// Streams of a route that is removed: after the drain time.
    Route(String),
    /// Streams to a target that is removed: after the drain time.
    Target {
        /// The upstream's name.
        upstream: String,
        /// The address as written.
        address: String,
    },
}

/// Connections that end in a reload, and the settings that are the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Connections of a listener, a route or a target.
    pub connections: DrainedConnections,
    /// Paths of the settings that differ; empty where a part is removed.
    pub settings: Vec<String>,
}

/// The connections that a reload ends. `kept` are the names of the listeners that both plans have.
pub(super) fn drained(
    kept: &BTreeSet<String>,
    settings: &[SettingChange],
    parts: &[PartChange],
) -> Vec<Drained> {
    let listeners = kept.iter().filter_map(|name| {
        let owner = SettingOwner::Listener(name.clone());
        let own = settings.iter().filter(|one| {
            let is_own = one.owner == owner && applies_to_connections(one.row);
            is_own || HEAD_ROWS.contains(&one.row) || one.owner == owner && ends_http3(one)
        });
        let settings: Vec<String> = own.map(|one| one.path.clone()).collect();
        (!settings.is_empty()).then(|| Drained {
            connections: DrainedConnections::Listener(name.clone()),
            settings,
        })
    });
    let removed = parts.iter().filter(|one| one.change == Change::Removed);
    let removed = removed.filter_map(|one| {
        let connections = match &one.part {
            Part::Listener(name) => DrainedConnections::RemovedListener(name.clone()),
            Part::Route(id) => DrainedConnections::Route(id.clone()),
            Part::Target { upstream, address } => DrainedConnections::Target {
                upstream: upstream.clone(),
                address: address.clone(),
            },
            Part::Certificate { .. }
            | Part::ObtainedHost { .. }
            | Part::Upstream(_)
            | Part::Agent(_) => return None,
        };
        Some(Drained {
            connections,
            settings: Vec::new(),
        })
    });
    listeners.chain(removed).collect()
}

/// Returns true if the change ends the listener's connections of HTTP/3.
fn ends_http3(change: &SettingChange) -> bool {
    change.row == listeners::HTTP3.path && !change.after.contains(&Value::Bool(true))
}

fn applies_to_connections(row: &str) -> bool {
    CONNECTION_ROWS.contains(&row) || row == listeners::PROTOCOL.path || row.starts_with(TLS_ROWS)
}

impl fmt::Display for DrainedConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listener(name) => write!(
                f,
                "connections of listener {name}, after the current response"
            ),
            Self::RemovedListener(name) => write!(f, "connections of listener {name}"),
            Self::Route(id) => write!(f, "streams of route {id}, after the drain time"),
            Self::Target { upstream, address } => {
                write!(
                    f,
                    "streams to {address} of upstream {upstream}, after the drain time"
                )
            }
        }
    }
}
