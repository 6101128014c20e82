//! The upstreams: short responses, large ones, and streams of numbered chunks.

use proxy_testkit::{Gate, Served, Upstream, ok};
use std::time::Duration;

/// Size of a chunk, in bytes.
pub(crate) const PIECE: usize = 1024;

/// Size of a large response, in bytes.
pub(crate) const BULK: usize = 4 << 20;

/// Interval between two chunks of a stream.
const CHUNK_INTERVAL: Duration = Duration::from_millis(20);

/// The upstreams.
pub(crate) struct Backend {
    pub(crate) http: Upstream,
    pub(crate) sockets: Upstream,
}

impl Backend {
    /// Streams without a number of chunks end when it is `over`.
    pub(crate) fn start(over: &Gate) -> Self {
        let over = over.clone();
        let bulk = ok(vec![b'x'; BULK]);
        let http = Upstream::start(move |served| {
            while let Some(asked) = served.request() {
                match asked.target.rsplit_once('/') {
                    Some(("/stream", pieces)) => stream(served, pieces.parse().ok(), &over),
                    Some((_, "bulk")) => drop(served.send(&bulk)),
                    _ => drop(served.send(ok("fine"))),
                }
            }
        });
        Self {
            http,
            sockets: Upstream::websocket(),
        }
    }
}

fn stream(served: &mut Served, pieces: Option<usize>, over: &Gate) {
    served.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    let never = Gate::new();
    let last = pieces.unwrap_or(usize::MAX);
    for number in 0..last {
        served.send(format!("{PIECE:x}\r\n{}\r\n", piece(number)));
        let ends = match pieces {
            Some(_) => never.opens_within(CHUNK_INTERVAL),
            None => over.opens_within(CHUNK_INTERVAL),
        };
        if ends {
            break;
        }
    }
    served.send("0\r\n\r\n");
}

fn piece(number: usize) -> String {
    format!("{number:0width$}\n", width = PIECE - 1)
}

/// Asserts that `body` is a whole stream, and returns the number of chunks.
#[track_caller]
pub(crate) fn pieces_of(body: &[u8]) -> u64 {
    let text = std::str::from_utf8(body).unwrap();
    let mut count = 0;
    for (number, line) in text.lines().enumerate() {
        assert_eq!(line.parse(), Ok(number));
        count += 1;
    }
    assert_eq!(body.len() % PIECE, 0);
    count
}
