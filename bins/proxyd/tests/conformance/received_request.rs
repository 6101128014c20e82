//! Requests as an upstream received them, by any protocol, and their invariants.

use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use proxy_testkit::{Fields, Request};

/// A whole request.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedRequest {
    pub(crate) http2: bool,
    pub(crate) method: String,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// All parts, for display.
    pub(crate) text: String,
}

impl From<&Request> for ReceivedRequest {
    fn from(request: &Request) -> Self {
        let owned = |fields: &Fields| {
            let each = fields.iter();
            each.map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect()
        };
        assert_eq!(request.version, "HTTP/1.1");
        Self {
            http2: false,
            method: request.method.clone(),
            target: request.target.clone(),
            fields: owned(&request.fields),
            body: request.body.clone(),
            trailers: owned(&request.trailers),
            text: String::from_utf8_lossy(&request.raw).into_owned(),
        }
    }
}

impl ReceivedRequest {
    /// A request received over HTTP/2.
    pub(crate) fn by_http2(head: &Parts, body: Vec<u8>, trailers: &HeaderMap) -> Self {
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let owned = |fields: &HeaderMap| {
            let each = fields.iter();
            each.map(|(name, value)| (name.to_string(), text(value)))
                .collect()
        };
        let target = head.uri.path_and_query().map(ToString::to_string);
        Self {
            http2: true,
            method: head.method.to_string(),
            target: target.unwrap_or_default(),
            fields: owned(&head.headers),
            text: format!("{head:?} {:?}", String::from_utf8_lossy(&body)),
            body,
            trailers: owned(trailers),
        }
    }

    /// The values of all fields of this name.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        let named = self.fields.iter().filter(|(other, _)| other == name);
        named.map(|(_, value)| value.as_str()).collect()
    }

    /// Asserts that the framing is correct and that no hop-by-hop field is left.
    ///
    /// The upstream has checked that lines end in CRLF, names are tokens and values contain no
    /// control characters: otherwise it accepts no request.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self.fault() {
            None => Ok(()),
            Some(fault) => Err(format!("a request {fault}: {:?}", self.text)),
        }
    }

    fn fault(&self) -> Option<&'static str> {
        let (lengths, codings) = (self.all("content-length"), self.all("transfer-encoding"));
        if self.all("host").len() != usize::from(!self.http2) {
            return Some("does not name one host");
        }
        if 1 < lengths.len() + codings.len() {
            return Some("has two lengths");
        }
        if codings
            .iter()
            .any(|coding| *coding != "chunked" || self.http2)
        {
            return Some("has an odd coding");
        }
        if let [length] = lengths[..]
            && length.parse() != Ok(self.body.len())
        {
            return Some("has a length that is not its own");
        }
        let options = self.all("connection");
        let known = ["te", "upgrade"];
        if options.iter().any(|it| !known.contains(it) || self.http2) {
            return Some("names options of the client's connection");
        }
        let hop = ["keep-alive", "proxy-connection", "http2-settings", "expect"];
        if hop.iter().any(|name| !self.all(name).is_empty()) {
            return Some("has fields of the client's connection");
        }
        if !self.target.starts_with('/') && self.target != "*" {
            return Some("has a target of an odd form");
        }
        None
    }
}
