//! The head of a recorded request, from a line of JSON.

use crate::decide::{RequestHead, read_target};
use crate::plan::Plan;
use http::header::CONTENT_LENGTH;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use serde_json::Value;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// The head of a recorded request.
#[derive(Clone, Debug)]
pub struct RecordedHead {
    /// Time since the first request or another epoch; at least the time of the preceding request.
    pub at: Duration,
    /// Name of the listener; `None` if it was not recorded.
    pub(crate) listener: Option<String>,
    pub(crate) method: Method,
    pub(crate) host: String,
    pub(crate) target: Option<PathAndQuery>,
    pub(crate) headers: HeaderMap,
    pub(super) client_ip: IpAddr,
    /// Size of the body in bytes, if it is known.
    pub(super) body_bytes: Option<u64>,
    /// The upstream that the request was forwarded to.
    pub(super) upstream: Option<String>,
    /// The status of the response.
    pub(super) status: Option<u16>,
    /// The route of the recorded response, if the log line has all inputs of a decision.
    pub(super) recorded_route: Option<RecordedRoute>,
}

/// The id of the route that answered a request; `None` if no route matched.
pub(super) type RecordedRoute = Option<String>;

impl RecordedHead {
    /// Reads a line of a recording or of the access log, or one with the same keys: `method`,
    /// `path` (with the query), `host`, `client_ip`, `bytes_in`, `route`, `upstream`, `status`, and
    /// also `listener` and `headers`, an object of texts or lists of texts. `None` for a line that
    /// is not a request.
    #[must_use]
    pub fn from_json(line: &Value, at: Duration) -> Option<Self> {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        let method = Method::from_bytes(text("method")?.as_bytes()).ok()?;
        let target = text("path")?;
        let recorded = line.get("headers").and_then(Value::as_object);
        let headers = recorded.map(headers).unwrap_or_default();
        let is_complete = recorded.is_some() && line.get("listener").is_some();
        let announced = headers.get(CONTENT_LENGTH);
        let announced = announced.and_then(|value| value.to_str().ok()?.parse().ok());
        let received = line.get("bytes_in").and_then(Value::as_u64);
        let address = text("client_ip").and_then(|text| text.parse().ok());
        let status = line.get("status").and_then(Value::as_u64);
        Some(Self {
            at,
            listener: text("listener").map(str::to_owned),
            target: match method {
                Method::CONNECT => None,
                _ => Some(read_target(target)?),
            },
            method,
            host: text("host").unwrap_or_default().to_owned(),
            headers,
            client_ip: address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            // A decision depends on the announced length only.
            body_bytes: announced.or(received.filter(|_| !is_complete)),
            upstream: text("upstream").map(str::to_owned),
            status: status.and_then(|status| u16::try_from(status).ok()),
            recorded_route: is_complete.then(|| text("route").map(str::to_owned)),
        })
    }

    /// The head for the decision of `plan`, with other header fields.
    pub(crate) fn request<'h>(&'h self, plan: &Plan, headers: &'h HeaderMap) -> RequestHead<'h> {
        let listener = self.listener_of(plan);
        RequestHead {
            listener,
            method: &self.method,
            host: &self.host,
            target: self.target.as_ref(),
            headers,
            content_length: self.body_bytes,
            client_ip: self.client_ip,
            is_tls: plan.is_tls(listener),
            is_peer_trusted: false,
        }
    }

    /// The listener with the recorded name, else the first one.
    fn listener_of(&self, plan: &Plan) -> usize {
        let name = self.listener.as_deref();
        let mut listeners = plan.listeners().iter();
        let found = name.and_then(|name| listeners.position(|one| one.name == name));
        found.unwrap_or_default()
    }
}

/// Fields from texts or lists of texts; invalid ones are omitted.
fn headers(recorded: &serde_json::Map<String, Value>) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in recorded {
        let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
            continue;
        };
        let values = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values.iter().filter_map(Value::as_str) {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.append(name.clone(), value);
            }
        }
    }
    headers
}

impl fmt::Display for RecordedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query may have secrets.
        let path = self.target.as_ref().map_or("", PathAndQuery::path);
        write!(f, "{} {}{path}", self.method, self.host)
    }
}
