//! The head of a recorded request, from a line of JSON.

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
    /// Its time since the first one or another epoch; later requests have no lesser one.
    pub at: Duration,
    /// Name of the listener; `None` if it was not recorded.
    pub(super) listener: Option<String>,
    pub(super) method: Method,
    pub(super) host: String,
    pub(super) target: Option<PathAndQuery>,
    pub(super) headers: HeaderMap,
    pub(super) client_ip: IpAddr,
    /// Size of the body in bytes, if it is known.
    pub(super) body_bytes: Option<u64>,
    /// The upstream that it was forwarded to.
    pub(super) upstream: Option<String>,
    /// The status of the response.
    pub(super) status: Option<u16>,
}

impl RecordedHead {
    /// Reads a line of the access log, or one with the same keys: `method`, `path` (with the query), `host`,
    /// `client_ip`, `bytes_in`, `upstream`, `status`, and also `listener` and `headers`, an object of texts.
    /// `None` for a line that is no request.
    #[must_use]
    pub fn from_json(line: &Value, at: Duration) -> Option<Self> {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        let method = Method::from_bytes(text("method")?.as_bytes()).ok()?;
        let target = text("path")?;
        let headers = line.get("headers").and_then(Value::as_object);
        let headers = headers.into_iter().flatten().filter_map(|(name, value)| {
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            Some((name, HeaderValue::from_str(value.as_str()?).ok()?))
        });
        let headers: HeaderMap = headers.collect();
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
                _ => Some(target.parse().ok()?),
            },
            method,
            host: text("host").unwrap_or_default().to_owned(),
            headers,
            client_ip: address.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            body_bytes: announced.or(received),
            upstream: text("upstream").map(str::to_owned),
            status: status.and_then(|status| u16::try_from(status).ok()),
        })
    }
}

impl fmt::Display for RecordedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The query may have secrets.
        let path = self.target.as_ref().map_or("", PathAndQuery::path);
        write!(f, "{} {}{path}", self.method, self.host)
    }
}
