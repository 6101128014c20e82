//! Serialized requests of a load.

use crate::backend::request_reader::BODY_BYTE;
use crate::command::{LoadProfile, Pacing, Protocol, RequestShape};

/// Headers of a browser besides the required ones.
const BROWSER: &[(&str, &str)] = &[
    ("accept-encoding", "gzip, deflate, br"),
    ("accept-language", "en-GB,en;q=0.9"),
    (
        "cookie",
        "session=0123456789abcdef0123456789abcdef; theme=dark",
    ),
    ("referer", "https://localhost/index.html"),
    ("cache-control", "no-cache"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "same-origin"),
    ("upgrade-insecure-requests", "1"),
];
/// The names of HPACK's static table that requests use. [RFC 7541, appendix A]
const AUTHORITY: u8 = 1;
const METHOD_GET: u8 = 2;
const PATH: u8 = 4;
const SCHEME_HTTPS: u8 = 7;
const ACCEPT: u8 = 19;
const USER_AGENT: u8 = 58;

/// `User-Agent` of a load that captures no exchange.
pub(crate) const USER_AGENT_VALUE: &str = "bench/1.0";

/// Requests in rotation.
pub(crate) struct Script {
    requests: Vec<Vec<u8>>,
    next: usize,
}

impl Script {
    /// Serializes a request for each path: whole for HTTP/1.1, its compressed head for HTTP/2.
    pub(crate) fn new(profile: &LoadProfile, user_agent: &str) -> Self {
        let LoadProfile {
            request,
            protocol,
            pacing,
            ..
        } = profile;
        let is_last = *pacing == Pacing::Fresh;
        let render = |path: &String| match protocol {
            Protocol::Http2 => block(path, user_agent),
            Protocol::Plain | Protocol::Tls => message(path, request, user_agent, is_last),
        };
        Self {
            requests: request.paths.iter().map(render).collect(),
            next: 0,
        }
    }

    /// The next request in rotation.
    pub(crate) fn next(&mut self) -> &[u8] {
        let turn = self.next;
        self.next = (turn + 1) % self.requests.len().max(1);
        self.requests.get(turn).map_or(&[], Vec::as_slice)
    }
}

fn message(path: &str, request: &RequestShape, user_agent: &str, is_last: bool) -> Vec<u8> {
    let method = if request.body_bytes > 0 {
        "POST"
    } else {
        "GET"
    };
    let mut head = format!(
        "{method} {path} HTTP/1.1\r\n\
         host: localhost\r\n\
         user-agent: {user_agent}\r\n\
         accept: */*\r\n"
    );
    let browser = BROWSER.iter().filter(|_| request.browser);
    for (name, value) in browser {
        head.extend([*name, ": ", *value, "\r\n"]);
    }
    if is_last {
        head.push_str("connection: close\r\n");
    }
    if request.body_bytes > 0 {
        let length = request.body_bytes.to_string();
        head.extend(["content-length: ", &length, "\r\n"]);
    }
    head.push_str("\r\n");
    let mut message = head.into_bytes();
    message.resize(message.len() + request.body_bytes, BODY_BYTE);
    message
}

/// A GET, encoded without the dynamic table, so that the same bytes are valid for every request.
fn block(path: &str, user_agent: &str) -> Vec<u8> {
    let mut block = vec![0x80 | METHOD_GET, 0x80 | SCHEME_HTTPS];
    literal(&mut block, PATH, path);
    literal(&mut block, AUTHORITY, "localhost");
    literal(&mut block, USER_AGENT, user_agent);
    literal(&mut block, ACCEPT, "*/*");
    block
}

/// A field without indexing, with a name of the static table. [RFC 7541 §6.2.2]
fn literal(block: &mut Vec<u8>, name: u8, value: &str) {
    match name.checked_sub(0x0f) {
        None => block.push(name),
        Some(more) => block.extend([0x0f, more]),
    }
    let length = u8::try_from(value.len()).unwrap_or(0x7f).min(0x7f);
    block.push(length);
    block.extend(value.bytes().take(usize::from(length)));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::ResponseSize;

    fn script(paths: &[&str], body_bytes: usize, protocol: Protocol, pacing: Pacing) -> Script {
        let paths = paths.iter().map(|&path| path.to_owned()).collect();
        let mut profile = LoadProfile::get(0, paths, ResponseSize::Small);
        profile.request.body_bytes = body_bytes;
        profile.protocol = protocol;
        profile.pacing = pacing;
        Script::new(&profile, USER_AGENT_VALUE)
    }

    #[test]
    fn paths_take_turns() {
        let mut script = script(&["/a", "/b"], 0, Protocol::Plain, Pacing::Closed);
        let firsts: Vec<Vec<u8>> = (0..3).map(|_| script.next()[..7].to_vec()).collect();
        assert_eq!(firsts, [b"GET /a ", b"GET /b ", b"GET /a "]);
    }

    #[test]
    fn a_body_makes_a_post_of_it() {
        let mut script = script(&["/s"], 3, Protocol::Tls, Pacing::Fresh);
        let text = String::from_utf8_lossy(script.next()).into_owned();
        assert!(text.starts_with("POST /s "));
        assert!(text.ends_with("connection: close\r\ncontent-length: 3\r\n\r\nppp"));
    }

    #[test]
    fn a_head_is_encoded_as_in_the_standard() {
        let mut script = script(&["/s"], 0, Protocol::Http2, Pacing::Closed);
        let expected = b"\x82\x87\x04\x02/s\x01\x09localhost\x0f\x2b\x09bench/1.0\x0f\x04\x03*/*";
        assert_eq!(script.next(), expected);
    }
}
