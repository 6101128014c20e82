//! Export of traces and metrics by OTLP.

use crate::address::check_authority;
use crate::place::Setting;
use http::{HeaderName, HeaderValue, Uri};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// The `otlp` block: the collector, and the signals that are exported to it by OTLP/HTTP with
/// protobuf.
#[derive(Clone, Debug)]
pub struct Otlp {
    /// Base URL of the collector; `/v1/traces` and `/v1/metrics` are appended.
    pub endpoint: Setting<OtlpEndpoint>,
    /// Fields of each request to the collector.
    pub headers: Vec<Setting<OtlpHeader>>,
    /// PEM file of trusted roots; `None` for the system's.
    pub ca_file: Option<Setting<PathBuf>>,
    /// `service.name` of the exported resource.
    pub service_name: Setting<String>,
    /// Compression of requests.
    pub compression: Setting<OtlpCompression>,
    /// Maximum time of one request, with its connection and its response.
    pub timeout: Setting<Duration>,
    /// True if spans are exported.
    pub traces: Setting<bool>,
    /// Spans that may wait for the collector; further ones are dropped and counted.
    pub queue_spans: Setting<u32>,
    /// True if metrics are exported.
    pub metrics: Setting<bool>,
    /// Time between two exports of metrics.
    pub interval: Setting<Duration>,
}

/// `http://host:port` or `https://host:port`, with an optional path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OtlpEndpoint {
    /// Without a slash at the end.
    base: Box<str>,
    is_tls: bool,
}

/// A field of requests to the collector. Its value may be a credential and is never shown.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct OtlpHeader {
    /// Field name, in lower case.
    pub name: HeaderName,
    /// Field value; `Debug` omits it.
    pub value: HeaderValue,
}

/// The compression of requests to the collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OtlpCompression {
    /// Requests are not compressed.
    None,
    /// `Content-Encoding: gzip`.
    Gzip,
}

/// Paths of OTLP/HTTP, which belong to a signal.
const SIGNAL_PATHS: [&str; 3] = ["/v1/traces", "/v1/metrics", "/v1/logs"];

impl OtlpEndpoint {
    /// The URL of a path that begins with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base)
    }

    /// Returns true if the scheme is `https`.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }
}

impl FromStr for OtlpEndpoint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.contains('#') {
            return Err("a fragment (`#…`) is never sent".to_owned());
        }
        let uri = text.parse::<Uri>().map_err(|error| error.to_string())?;
        let is_tls = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err("it begins with neither `https://` nor `http://`".to_owned()),
        };
        let authority = uri.authority().ok_or("it has no host")?;
        if authority.as_str().contains('@') {
            return Err("a credential belongs in `header \"Authorization\" \"…\"`".to_owned());
        }
        check_authority(authority.as_str()).map_err(|error| error.to_string())?;
        if uri.query().is_some() {
            return Err("a query is never sent".to_owned());
        }
        let base = text.trim_end_matches('/');
        if SIGNAL_PATHS.iter().any(|path| base.ends_with(path)) {
            return Err(
                "`/v1/traces` and `/v1/metrics` are appended: leave the path out".to_owned(),
            );
        }
        Ok(Self {
            base: base.into(),
            is_tls,
        })
    }
}

impl fmt::Display for OtlpEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.base)
    }
}

impl OtlpCompression {
    /// The word in a configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Gzip => "gzip",
        }
    }
}

impl fmt::Display for OtlpCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Omits the value.
impl fmt::Debug for OtlpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OtlpHeader({})", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_a_base_url() {
        for (text, traces) in [
            ("http://c:4318", "http://c:4318/v1/traces"),
            ("http://c:4318/", "http://c:4318/v1/traces"),
            ("https://c/otlp", "https://c/otlp/v1/traces"),
        ] {
            let endpoint: OtlpEndpoint = text.parse().unwrap();
            assert_eq!(endpoint.url("/v1/traces"), traces);
            assert_eq!(endpoint.is_tls(), text.starts_with("https"));
        }
        for text in [
            "",
            "c:4318",
            "grpc://c:4317",
            "http://",
            "http://user:secret@c:4318",
            "http://c:4318/?a=b",
            "http://c:4318/#a",
            "http://c:4318/v1/traces",
            "http://c:99999",
            "http://c:0",
            "http://c:port",
        ] {
            assert!(text.parse::<OtlpEndpoint>().is_err(), "{text}");
        }
    }

    #[test]
    fn a_field_is_shown_without_its_value() {
        let field = OtlpHeader {
            name: HeaderName::from_static("authorization"),
            value: HeaderValue::from_static("s3cret"),
        };
        assert_eq!(format!("{field:?}"), "OtlpHeader(authorization)");
    }
}
