//! A target with responses that the query of a request describes.

use proxy_testkit::{Request, Upstream};
use std::fmt::Write as _;

/// A target that answers 200 with the request line it received. `status=404`, `size=500`, `type=text/html` and
/// `field=Name:value` in the query change the response; `%20` and other escapes are decoded.
pub(crate) fn start() -> Upstream {
    Upstream::start(|served| {
        while let Some(request) = served.request() {
            let is_last = request.version == "HTTP/1.0";
            let upgrades = request.fields.get("upgrade").is_some();
            if upgrades {
                served.send(
                    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello",
                );
                return;
            }
            served.send(response(&request));
            if is_last {
                return;
            }
        }
    })
}

fn response(request: &Request) -> Vec<u8> {
    let query = request
        .target
        .split_once('?')
        .map_or("", |(_, query)| query);
    let parameters: Vec<(&str, String)> = query
        .split('&')
        .filter_map(|it| it.split_once('='))
        .map(|(name, value)| (name, decoded(value)))
        .collect();
    let find = |name: &str| {
        let found = parameters.iter().find(|(it, _)| *it == name);
        found.map(|(_, value)| value.as_str())
    };
    let status = find("status").unwrap_or("200");
    let size = find("size").and_then(|it| it.parse().ok());
    let body = match size {
        Some(size) => "y".repeat(size),
        None => format!("seen {} {}", request.method, request.target),
    };
    let media_type = find("type").unwrap_or("text/plain");
    let mut head = format!(
        "HTTP/1.1 {status} Status\r\nContent-Type: {media_type}\r\nX-Powered-By: tests\r\nContent-Length: {}\r\n",
        body.len()
    );
    for (_, field) in parameters.iter().filter(|(name, _)| *name == "field") {
        _ = write!(head, "{field}\r\n");
    }
    if request.version == "HTTP/1.0" {
        head.push_str("Connection: close\r\n");
    }
    head.push_str("\r\n");
    if request.method != "HEAD" {
        head.push_str(&body);
    }
    head.into_bytes()
}

fn decoded(text: &str) -> String {
    let mut decoded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('%') {
        decoded.push_str(before);
        let digits = after.get(..2).unwrap_or_default();
        if let Ok(byte) = u8::from_str_radix(digits, 16) {
            decoded.push(char::from(byte));
            rest = after.get(2..).unwrap_or_default();
        } else {
            decoded.push('%');
            rest = after;
        }
    }
    decoded.push_str(rest);
    decoded
}
