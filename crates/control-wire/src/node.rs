//! A node's requests and the answers to them.

use crate::id::{BundleId, InstanceId, NodeId, OrgId, ProjectId};
use crate::jwk::JsonWebKey;
use crate::order::Confirmation;
use crate::rfc3339;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// Asks to become a node of a project; the enrolment token is the credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RegisterRequest {
    /// Unique in the project.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// At most 32 labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
}

/// Identity of a new node, which it must keep.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RegisterResponse {
    /// The node's identifier.
    pub node_id: NodeId,
    /// 32 random bytes in Base64-URL, for `X-Service-Node-Key`; shown this once.
    pub node_key: String,
    /// The project.
    pub project: ProjectId,
    /// The organization.
    pub org: OrgId,
    /// The keys of orders that the node accepts, pinned from now on.
    pub signing_keys: Vec<JsonWebKey>,
    /// Seconds between two heartbeats.
    pub heartbeat_interval_secs: u64,
}

/// A node's short-lived credential.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TokenResponse {
    /// A JWT for `Authorization: Bearer`.
    pub token: String,
    /// Expiry: 12 hours after its issue.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
}

/// A heartbeat of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HeartbeatRequest {
    /// Load of the machine.
    pub health: Health,
    /// The version of the proxy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 100)]
    pub version: Option<String>,
    /// Status of the node; absent: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<NodeStatus>,
    /// Counters of the node; absent: unchanged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub traffic: Option<Traffic>,
    /// Random for each process; alternating values reveal two processes with one identity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instance: Option<InstanceId>,
}

/// Load of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Health {
    /// 100 for one core.
    #[schema(minimum = 0, maximum = 100_000)]
    pub cpu_percent: f64,
}

/// A node's report of its state, the only source about it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeStatus {
    /// The bundle of the newest order that the node has verified.
    #[serde(default)]
    pub desired: Option<BundleId>,
    /// Fetched and verified, not active yet.
    #[serde(default)]
    pub staged: Option<BundleId>,
    /// In force.
    #[serde(default)]
    pub active: Option<BundleId>,
    /// The bundle that the node starts with while the control plane is unreachable.
    #[serde(default)]
    pub last_good: Option<BundleId>,
    /// The counter of the order that the verdict answers: a bundle may be ordered again.
    #[serde(default)]
    pub order: Option<u64>,
    /// Result of the activation of that order's bundle.
    #[serde(default)]
    pub verdict: Option<Verdict>,
    /// Reasons of the failure: at most 100 texts of at most 1 000 characters.
    #[serde(default)]
    pub diagnostics: Vec<String>,
    /// True if the files of the active bundle were edited on the node's disk. They are not loaded;
    /// the node serves the content it loaded before.
    #[serde(default, skip_serializing_if = "is_false")]
    pub altered: bool,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
fn is_false(value: &bool) -> bool {
    !value
}

/// Result of a node's activation of a bundle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It is active.
    Accepted,
    /// The node keeps its former bundle.
    Rejected,
}

/// Upper bounds of the latency buckets, in milliseconds. One more bucket holds the rest.
pub const LATENCY_BOUNDS_MS: [u32; 11] = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000];

/// Counters of a node since the activation of `active`. Counts are additive; averages are not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Traffic {
    /// By route: at most 500, with names of 1 to 256 bytes in UTF-8.
    pub routes: BTreeMap<String, RouteTraffic>,
    /// Connections of clients; absent from nodes that do not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connections: Option<ConnectionTraffic>,
}

/// Connections that clients made to all listeners.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionTraffic {
    /// All accepted ones.
    pub accepted: u64,
    /// TLS handshakes that were completed.
    pub handshakes_completed: u64,
    /// TLS handshakes that failed, such as for a certificate that the client does not trust.
    pub handshakes_failed: u64,
    /// Connections that were closed because they began without a PROXY protocol header.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub proxy_headers_failed: u64,
}

/// Control planes of an earlier version refuse the field.
#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Counters of one route.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTraffic {
    /// Requests that were answered.
    pub requests: u64,
    /// Responses with a status of 500 or more.
    pub errors: u64,
    /// Failures by their reason, such as `connect_refused`: at most 100, with names of 1 to 256 bytes in UTF-8.
    #[serde(default)]
    pub reasons: BTreeMap<String, u64>,
    /// Requests by duration: up to 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 5000 ms, and longer.
    #[schema(value_type = Vec<u64>, min_items = 12, max_items = 12)]
    pub latency: [u64; LATENCY_BOUNDS_MS.len() + 1],
    /// Requests by status: at most 100. Empty from nodes that do not count them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub statuses: BTreeMap<u16, u64>,
    /// Body bytes received from clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_in: Option<u64>,
    /// Body bytes sent to clients.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
    /// The sum of all durations, in microseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<u64>,
    /// Streamed answers by the time to the first byte of their body, in the buckets of `latency`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<u64>>, min_items = 12, max_items = 12)]
    pub first_byte: Option<[u64; LATENCY_BOUNDS_MS.len() + 1]>,
    /// Answers by size of body: class 0 is empty, class n has 2^(n-1) to 2^n - 1 bytes, and class 31 all above.
    /// Empty from nodes that do not count them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schema(value_type = BTreeMap<String, u64>)]
    pub sizes: BTreeMap<u8, u64>,
}

/// The answer to a heartbeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeartbeatResponse {
    /// Seconds until the next heartbeat.
    pub heartbeat_interval_secs: u64,
    /// The counter of the node's newest order, which begins the `ETag` of its desired state; 0: none.
    pub order: u64,
    /// Confirmation of that order. Absent from control planes without trials.
    #[serde(default)]
    pub confirmation: Confirmation,
}

/// An event on a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EventsRequest {
    /// 1 to 100, in their order.
    #[schema(min_items = 1, max_items = 100)]
    pub events: Vec<NodeEvent>,
}

/// One event of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NodeEvent {
    /// When, by the node's clock; not before 1970.
    #[schema(value_type = String, format = DateTime)]
    #[serde(deserialize_with = "rfc3339::required")]
    pub at: Timestamp,
    /// A name for programs, such as `bundle.activated`: 1 to 64 characters `[a-z0-9._-]`.
    #[schema(min_length = 1, max_length = 64)]
    pub kind: String,
    /// A sentence for readers.
    #[serde(default)]
    #[schema(max_length = 1000)]
    pub message: String,
}

impl std::fmt::Debug for RegisterResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RegisterResponse({}, …)", self.node_id)
    }
}

impl std::fmt::Debug for TokenResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenResponse(…, {})", self.expires_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_of_an_earlier_release_is_parsed_and_stored_unchanged() {
        let text = r#"{"routes":{"api":{"requests":3,"errors":1,"reasons":{},"latency":[3,0,0,0,0,0,0,0,0,0,0,0]}}}"#;
        let read: Traffic = serde_json::from_str(text).unwrap();
        let route = read.routes.get("api").unwrap();
        assert_eq!((route.requests, route.statuses.len()), (3, 0));
        assert_eq!((route.bytes_out, route.first_byte), (None, None));
        assert!(route.sizes.is_empty());
        assert_eq!(read.connections, None);
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }

    #[test]
    fn statuses_are_keys_of_an_object() {
        let mut route = RouteTraffic::default();
        route.statuses.insert(404, 7);
        let text = serde_json::to_string(&route).unwrap();
        assert!(text.contains(r#""statuses":{"404":7}"#), "{text}");
        assert_eq!(serde_json::from_str::<RouteTraffic>(&text).unwrap(), route);
    }
}
