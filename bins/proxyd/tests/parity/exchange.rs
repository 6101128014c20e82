//! A request, the response to it, and the requests that the target received.

use proxy_testkit::Request as Received;
use std::collections::BTreeSet;
use std::fmt::{self, Write as _};

/// Methods that an upstream gets as they are.
pub(crate) const METHODS: &[&str] = &["HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"];

/// Credentials of `ann`, and wrong ones.
pub(crate) const ANN: &str = "Basic YW5uOm9uZQ==";
pub(crate) const OTHER: &str = "Basic eDp5";

/// A request that is sent to both servers. `@PORT` is the server's port.
pub(crate) struct Request {
    pub(crate) method: &'static str,
    pub(crate) host: &'static str,
    pub(crate) target: String,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

/// A response with the requests that the target received for it. The server's port is `PORT` in it.
#[derive(Debug)]
pub(crate) struct Exchange {
    /// 0 for a connection that was closed without a response.
    status: u16,
    fields: BTreeSet<(String, String)>,
    body: Vec<u8>,
    received: Vec<Seen>,
}

/// A request as the target received it.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    line: String,
    fields: BTreeSet<(String, String)>,
    body: Vec<u8>,
}

/// Fields of responses that describe one connection or one moment, or name the server.
const UNCOMPARED: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "last-modified",
    "server",
    "transfer-encoding",
    "x-correlation-id",
];

/// Fields of requests to the target that describe one connection, or are the proxy's own.
const UNCOMPARED_AT_TARGET: &[&str] = &[
    "connection",
    "content-length",
    "traceparent",
    "transfer-encoding",
    "x-correlation-id",
];

/// Fields of an error's own body.
const OF_ERRORS: &[&str] = &[
    "cache-control",
    "content-type",
    "vary",
    "x-content-type-options",
];

impl Request {
    pub(crate) fn get(host: &'static str, target: &str) -> Self {
        Self {
            method: "GET",
            host,
            target: target.to_owned(),
            fields: Vec::new(),
            body: Vec::new(),
        }
    }

    pub(crate) fn get_all(host: &'static str, targets: &[&str]) -> Vec<Self> {
        targets.iter().map(|it| Self::get(host, it)).collect()
    }

    pub(crate) fn method(mut self, method: &'static str) -> Self {
        self.method = method;
        self
    }

    pub(crate) fn field(mut self, name: &str, value: &str) -> Self {
        self.fields.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn body(mut self, bytes: usize) -> Self {
        self.method = "POST";
        self.body = vec![b'a'; bytes];
        self
    }

    /// The bytes for the server at a port.
    pub(crate) fn bytes(&self, port: u16) -> Vec<u8> {
        let Self {
            method,
            host,
            target,
            fields,
            body,
        } = self;
        let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\n");
        let has_connection = fields.iter().any(|(name, _)| name == "Connection");
        if !has_connection {
            head.push_str("Connection: close\r\n");
        }
        for (name, value) in fields {
            _ = write!(head, "{name}: {value}\r\n");
        }
        if !body.is_empty() {
            _ = write!(head, "Content-Length: {}\r\n", body.len());
        }
        head.push_str("\r\n");
        let mut bytes = head.replace("@PORT", &port.to_string()).into_bytes();
        bytes.extend(body);
        bytes
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            method,
            host,
            target,
            fields,
            body,
        } = self;
        write!(f, "{method} {host} {target}")?;
        for (name, value) in fields.iter().take(2) {
            write!(f, " {name}: {}", value.get(..30).unwrap_or(value))?;
        }
        if fields.len() > 2 {
            write!(f, " and {} fields", fields.len() - 2)?;
        }
        if !body.is_empty() {
            write!(f, " {} bytes", body.len())?;
        }
        Ok(())
    }
}

impl Exchange {
    pub(crate) fn new(port: u16, response: &[u8], received: &[Received]) -> Self {
        let plain = |text: &str| text.replace(&format!(":{port}"), ":PORT");
        let end = response.windows(4).position(|it| it == b"\r\n\r\n");
        let (head, body) = response.split_at(end.unwrap_or(response.len()));
        let head = String::from_utf8_lossy(head);
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1));
        let fields = lines.filter_map(|line| line.split_once(':'));
        let all: Vec<(String, String)> = fields
            .map(|(name, value)| (name.to_ascii_lowercase(), plain(value.trim())))
            .collect();
        let is_chunked = all.iter().any(|(name, _)| name == "transfer-encoding");
        let body = body.get(4..).unwrap_or_default();
        let seen = received.iter().map(|request| Seen {
            line: plain(&format!("{} {}", request.method, request.target)),
            fields: request
                .fields
                .iter()
                .map(|(name, value)| (name.to_ascii_lowercase(), plain(value)))
                .filter(|(name, _)| !UNCOMPARED_AT_TARGET.contains(&name.as_str()))
                .collect(),
            body: request.body.clone(),
        });
        Self {
            status: status.and_then(|it| it.parse().ok()).unwrap_or(0),
            fields: all
                .into_iter()
                .filter(|(name, _)| !UNCOMPARED.contains(&name.as_str()))
                .collect(),
            body: if is_chunked {
                without_chunks(body)
            } else {
                body.to_vec()
            },
            received: seen.collect(),
        }
    }

    /// Differences between a server and proxyd. Where the statuses differ, fields and bodies are not compared: they follow
    /// from it.
    pub(crate) fn differences(peer: &Self, proxyd: &Self) -> Vec<String> {
        let mut found = Vec::new();
        if peer.status != proxyd.status {
            return vec![format!("status {} and {}", peer.status, proxyd.status)];
        }
        let is_own = peer.received.is_empty() && proxyd.received.is_empty();
        let is_error = is_own && matches!(peer.status, 300..);
        let is_compared =
            |(name, _): &&(String, String)| !(is_error && OF_ERRORS.contains(&name.as_str()));
        for (name, value) in peer.fields.difference(&proxyd.fields).filter(is_compared) {
            found.push(format!("lacks {name}: {value}"));
        }
        for (name, value) in proxyd.fields.difference(&peer.fields).filter(is_compared) {
            found.push(format!("has {name}: {value}"));
        }
        if peer.body != proxyd.body && !is_error && !both_compressed(peer, proxyd) {
            found.push("body".to_owned());
        }
        let (theirs, ours) = (peer.received.len(), proxyd.received.len());
        if theirs != ours {
            found.push(format!("requests {theirs} and {ours}"));
        }
        for (theirs, ours) in peer.received.iter().zip(&proxyd.received) {
            if theirs.line != ours.line {
                found.push(format!("sent {} and {}", theirs.line, ours.line));
            }
            for (name, value) in theirs.fields.difference(&ours.fields) {
                found.push(format!("not sent {name}: {value}"));
            }
            for (name, value) in ours.fields.difference(&theirs.fields) {
                found.push(format!("sent {name}: {value}"));
            }
            if theirs.body != ours.body {
                found.push("sent body".to_owned());
            }
        }
        found
    }
}

/// Two encoders give other bytes for the same content.
fn both_compressed(peer: &Exchange, proxyd: &Exchange) -> bool {
    let has_coding = |it: &Exchange| it.fields.iter().any(|(name, _)| name == "content-encoding");
    has_coding(peer) && has_coding(proxyd)
}

fn without_chunks(bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut rest = bytes;
    while let Some(end) = rest.windows(2).position(|it| it == b"\r\n") {
        let (size, after) = rest.split_at(end);
        let size = String::from_utf8_lossy(size);
        let Ok(size) = usize::from_str_radix(size.trim(), 16) else {
            break;
        };
        let chunk = after.get(2..2 + size).unwrap_or_default();
        body.extend(chunk);
        rest = after.get(2 + size + 2..).unwrap_or_default();
    }
    body
}
