//! Agents inspect bodies in content codings; the target receives the inspected bytes.

use crate::support::{Config, Proxy};
use agent_protocol::{BodyMode, ProxyMessage, Wants};
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use proxy_coding::{Coding, CompressionLevels, Encoder};
use proxy_testkit::{AgentReply, FakeAgent, Response, Upstream, ok};
use std::io::Write;

/// The content of the bodies, and the bytes that an inspection must not miss.
const CONTENT: &[u8] = b"name=ann&note=hello";
const HIDDEN: &[u8] = b"&cmd=evil&";

/// A proxy with an agent that inspects bodies and allows all of them.
struct Setup {
    agent: FakeAgent,
    upstream: Upstream,
    proxy: Proxy,
}

impl Setup {
    fn start(mode: BodyMode) -> Self {
        let upstream = Upstream::start(|served| {
            while served.request().is_some() {
                served.send(ok("served"));
            }
        });
        let wants = Wants {
            request_body: mode,
            ..Wants::default()
        };
        let agent = FakeAgent::start(wants, |_| AgentReply::allow());
        let agents = format!(
            "agents {{ agent \"waf\" {{ unix-socket \"{}\"; failure-mode \"closed\"
                timeout-ms 30000; events \"request-body\" }} }}",
            agent.path().display()
        );
        let proxy = Config::through(&upstream, "agents \"waf\"")
            .top(&agents)
            .start();
        Self {
            agent,
            upstream,
            proxy,
        }
    }

    fn post(&self, fields: &str, body: &[u8]) -> Response {
        let length = body.len();
        let head =
            format!("POST / HTTP/1.1\r\nHost: a.test\r\n{fields}Content-Length: {length}\r\n\r\n");
        self.proxy.connect().ask([head.as_bytes(), body].concat())
    }

    /// The content that the agent received after its first `events` events.
    fn seen(&self, events: usize) -> Vec<u8> {
        let events = self.agent.events().split_off(events);
        let pieces = events.iter().filter_map(|event| {
            let ProxyMessage::RequestBody(chunk) = event else {
                return None;
            };
            Some(chunk.data.as_bytes().to_vec())
        });
        pieces.flatten().collect()
    }

    /// Asserts that a body in `codings` is refused, or that the target got the bytes that the agent
    /// saw, without a coding. Returns whether it was forwarded.
    fn check(&self, codings: &str, body: &[u8]) -> bool {
        let what = format!("{codings}: {}", body.escape_ascii());
        let (events, requests) = (self.agent.events().len(), self.upstream.requests().len());

        let response = self.post(&format!("Content-Encoding: {codings}\r\n"), body);

        let forwarded = self.upstream.requests().split_off(requests);
        let Some(request) = forwarded.first() else {
            assert_eq!(response.status, 400, "{what}");
            return false;
        };
        assert_eq!(response.status, 200, "{what}");
        assert_eq!(request.body, self.seen(events), "{what}");
        assert!(!request.fields.has("content-encoding"), "{what}");
        let length = request.body.len().to_string();
        assert_eq!(
            request.fields.get("content-length"),
            Some(&*length),
            "{what}"
        );
        true
    }
}

fn encode(coding: Coding, plain: &[u8]) -> Vec<u8> {
    let levels = CompressionLevels {
        gzip: 6,
        brotli: 4,
        zstd: 3,
    };
    let mut encoder = Encoder::new(coding, levels).unwrap();
    let mut bytes = encoder.push(plain).unwrap().to_vec();
    bytes.extend_from_slice(&encoder.finish().unwrap());
    bytes
}

fn gzip() -> Vec<u8> {
    encode(Coding::Gzip, CONTENT)
}

/// A member of gzip with [`HIDDEN`] in its head.
fn gzip_with(fields: impl FnOnce(GzBuilder) -> GzBuilder) -> Vec<u8> {
    let mut encoder: GzEncoder<Vec<u8>> =
        fields(GzBuilder::new()).write(Vec::new(), Compression::best());
    encoder.write_all(CONTENT).unwrap();
    encoder.finish().unwrap()
}

/// The same with the checksum of the head, which the library does not write.
fn gzip_with_a_checksum_of_its_head() -> Vec<u8> {
    let mut bytes = gzip();
    bytes[3] |= 2;
    let mut crc = flate2::Crc::new();
    crc.update(&bytes[..10]);
    let [low, high, ..] = crc.sum().to_le_bytes();
    bytes.splice(10..10, [low, high]);
    bytes
}

fn zlib(plain: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(plain).unwrap();
    encoder.finish().unwrap()
}

fn raw_deflate() -> Vec<u8> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(CONTENT).unwrap();
    encoder.finish().unwrap()
}

/// A frame of zstd that decoders skip, with [`HIDDEN`] in it.
fn skippable() -> Vec<u8> {
    let length = u32::try_from(HIDDEN.len()).unwrap().to_le_bytes();
    [&[0x50, 0x2a, 0x4d, 0x18], &length[..], HIDDEN].concat()
}

/// An empty brotli stream with [`HIDDEN`] in its metadata.
fn brotli_metadata() -> Vec<u8> {
    // A window of 16 bits, no last block, metadata, one byte of length, and the length less one.
    let bits = 0b010_1100 | (HIDDEN.len() - 1) << 7;
    let [low, high] = u16::try_from(bits).unwrap().to_le_bytes();
    [&[low, high], HIDDEN, &[3]].concat()
}

/// Bodies with bytes outside of their content, or with different contents for different readers.
fn bodies() -> Vec<(&'static str, Vec<u8>)> {
    let zstd = encode(Coding::Zstd, CONTENT);
    let brotli = encode(Coding::Brotli, CONTENT);
    let twice = encode(Coding::Brotli, &gzip());
    vec![
        ("gzip", gzip()),
        ("x-gzip", gzip()),
        ("gzip", gzip_with(|head| head.comment(HIDDEN))),
        ("gzip", gzip_with(|head| head.extra(HIDDEN))),
        ("gzip", gzip_with(|head| head.filename(HIDDEN))),
        ("gzip", gzip_with_a_checksum_of_its_head()),
        ("gzip", [gzip(), encode(Coding::Gzip, HIDDEN)].concat()),
        ("gzip", [&gzip(), HIDDEN].concat()),
        ("gzip", [gzip(), vec![0; 64]].concat()),
        ("deflate", zlib(CONTENT)),
        ("deflate", [&zlib(CONTENT), HIDDEN].concat()),
        ("deflate", raw_deflate()),
        ("zstd", zstd.clone()),
        ("zstd", [skippable(), zstd.clone()].concat()),
        ("zstd", [zstd.clone(), skippable()].concat()),
        ("zstd", [&zstd, HIDDEN].concat()),
        (
            "zstd",
            [zstd.clone(), encode(Coding::Zstd, HIDDEN)].concat(),
        ),
        ("br", brotli.clone()),
        ("br", [&brotli, HIDDEN].concat()),
        ("br", brotli_metadata()),
        ("gzip, br", twice),
    ]
}

#[test]
fn the_target_gets_the_bytes_that_the_agent_saw_of_any_coding() {
    for mode in [BodyMode::Buffered, BodyMode::Chunks] {
        let setup = Setup::start(mode);
        let forwarded = bodies()
            .iter()
            .filter(|(codings, body)| setup.check(codings, body))
            .count();
        assert!(10 < forwarded, "plain bodies pass: {forwarded}");
    }
}

#[test]
fn the_target_gets_the_bytes_that_the_agent_saw_of_randomly_mangled_bodies() {
    let setup = Setup::start(BodyMode::Buffered);
    let bodies = bodies();
    let mut seed: u32 = 7;
    let mut next = |below: usize| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        usize::try_from(seed >> 8).unwrap() % below
    };
    for _ in 0..400 {
        let (codings, mut body) = bodies[next(bodies.len())].clone();
        for _ in 0..=next(3) {
            let at = next(body.len());
            match next(3) {
                0 => body[at] = u8::try_from(next(256)).unwrap(),
                1 => drop(body.splice(at..at, HIDDEN.iter().copied())),
                _ => body.truncate(at.max(1)),
            }
        }
        setup.check(codings, &body);
    }
}

#[test]
fn codings_that_are_not_decoded_are_refused() {
    let setup = Setup::start(BodyMode::Buffered);
    let four = (0..4).fold(CONTENT.to_vec(), |body, _| encode(Coding::Gzip, &body));
    for (codings, body) in [
        ("gzip, gzip, gzip, gzip", four),
        ("gzip, compress", gzip()),
        ("unheard-of", CONTENT.to_vec()),
    ] {
        assert!(!setup.check(codings, &body), "{codings}");
    }
    assert_eq!(
        setup.post("Content-Encoding: identity\r\n", CONTENT).status,
        200
    );
}

#[test]
fn a_decoded_body_is_sent_without_fields_about_its_coded_bytes() {
    let setup = Setup::start(BodyMode::Buffered);
    let fields = "Content-Encoding: gzip\r\nContent-MD5: Q2hlY2s=\r\nDigest: a=b\r\n\
        Content-Digest: a=:b=:\r\nRepr-Digest: a=:b=:\r\nX-Other: 1\r\n";

    assert_eq!(setup.post(fields, &gzip()).status, 200);

    let request = setup.upstream.last_request();
    assert_eq!(request.body, CONTENT);
    assert!(request.fields.has("x-other"));
    for name in ["content-md5", "digest", "content-digest", "repr-digest"] {
        assert!(!request.fields.has(name), "{name}");
    }
}
