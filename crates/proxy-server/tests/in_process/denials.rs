//! Denials of agents are final even if the rest of the agent's answer fails.

use crate::support::{Config, Proxy};
use proxy_testkit::{Upstream, get, ok};
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

/// The agents' time, in milliseconds: ample for an answer that arrives, and waited out by one that
/// stalls.
const TIMEOUT_MS: u32 = 2_500;
/// Pause between two bytes of a body that trickles.
const TRICKLE_INTERVAL: Duration = Duration::from_millis(20);
/// More than `max-agent-response-bytes`.
const LARGE_BYTES: usize = 20_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protocol {
    Native,
    ForwardAuth,
    ExtAuthz,
}

/// Transfer of the body of an agent's denial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BodyBehaviour {
    Fits,
    TooLarge,
    Stalls,
    BreaksOff,
    Trickles,
}

impl BodyBehaviour {
    const ALL: [Self; 5] = [
        Self::Fits,
        Self::TooLarge,
        Self::Stalls,
        Self::BreaksOff,
        Self::Trickles,
    ];

    /// The body that the agent announces.
    fn body(self) -> Vec<u8> {
        let length = if self == Self::Fits { 4 } else { LARGE_BYTES };
        vec![b'x'; length]
    }

    /// The part of an answer sent at once.
    fn sent(self, answer: &[u8]) -> &[u8] {
        match self {
            Self::Fits | Self::TooLarge => answer,
            // The body is nearly all of the answer.
            Self::Stalls | Self::BreaksOff | Self::Trickles => {
                &answer[..answer.len() - LARGE_BYTES]
            }
        }
    }
}

/// The answer of one agent.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    protocol: Protocol,
    answer: Vec<u8>,
    behaviour: BodyBehaviour,
    /// The status for the client, by failure mode if the agent has not denied.
    status: Option<u16>,
}

/// A field of protobuf with a length.
fn field(number: u8, value: &[u8]) -> Vec<u8> {
    let mut bytes = vec![number << 3 | 2];
    let mut length = value.len();
    while 0x7f < length {
        bytes.push(u8::try_from(length & 0x7f).unwrap() | 0x80);
        length >>= 7;
    }
    bytes.push(u8::try_from(length).unwrap());
    [&bytes, value].concat()
}

fn number(field: u8, value: u16) -> Vec<u8> {
    let [low, high] = [value & 0x7f, value >> 7].map(|part| u8::try_from(part).unwrap());
    vec![field << 3, low | 0x80, high]
}

/// A frame of HTTP/2 on the stream 1, or on the connection.
fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags, 0, 0, 0, stream], payload].concat()
}

/// A gRPC response without its trailers.
fn grpc(message: &[u8], behaviour: BodyBehaviour) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let prefixed = [&[0], &length[..], message].concat();
    let mut response = frame(1, 4, 1, b"\x88");
    for piece in behaviour.sent(&prefixed).chunks(16_384) {
        response.extend(frame(0, 0, 1, piece));
    }
    response
}

fn ext_authz((code, status): (u16, u16), behaviour: BodyBehaviour) -> Vec<u8> {
    let location = [field(1, b"location"), field(2, b"/login")].concat();
    let denied = [
        field(1, &number(1, status)),
        field(2, &field(1, &location)),
        field(3, &behaviour.body()),
    ];
    let message = [field(1, &number(1, code)), field(2, &denied.concat())].concat();
    grpc(&message, behaviour)
}

fn forward_auth(head: &str, behaviour: BodyBehaviour) -> Vec<u8> {
    let body = behaviour.body();
    let head = format!("HTTP/1.1 {head}Content-Length: {}\r\n\r\n", body.len());
    behaviour.sent(&[head.as_bytes(), &body].concat()).to_vec()
}

fn native(fields: &str, behaviour: BodyBehaviour) -> Vec<u8> {
    // In base64.
    let body = String::from_utf8(behaviour.body()).unwrap();
    let text = format!(r#"{{"id":1,"seq":0,{fields},"body":"{body}"}}"#);
    native_frame(0x20, behaviour, &text)
}

fn native_frame(kind: u8, behaviour: BodyBehaviour, text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len() + 1).unwrap().to_be_bytes();
    let frame = [&length[..], &[kind], text.as_bytes()].concat();
    behaviour.sent(&frame).to_vec()
}

/// Every status of a denial, and the status that the client gets.
const FORWARD_AUTH: [(&str, u16); 6] = [
    ("302 Found\r\nLocation: /login\r\n", 302),
    ("302 Found\r\n", 403),
    ("305 Use Proxy\r\n", 403),
    ("401 Unauthorized\r\nWWW-Authenticate: Basic\r\n", 401),
    ("403 Forbidden\r\nX-Why: no\r\n", 403),
    ("404 Not Found\r\n", 404),
];
const EXT_AUTHZ: [((u16, u16), u16); 5] = [
    ((7, 403), 403),
    ((16, 401), 401),
    ((7, 302), 302),
    ((7, 200), 403),
    ((0, 429), 429),
];
const NATIVE: [(&str, u16); 6] = [
    (r#""decision":"block""#, 403),
    (r#""decision":"block","status":429"#, 429),
    (r#""decision":"block","status":200"#, 403),
    (r#""decision":"block","unknown":1"#, 403),
    (
        r#""decision":"block","headers":[["content-length","1"]]"#,
        403,
    ),
    (r#""decision":"challenge","challenges":["Basic"]"#, 401),
];

fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for behaviour in BodyBehaviour::ALL {
        let mut add = |protocol, name: String, answer, status| {
            cases.push(Case {
                name: format!("{protocol:?} {name} {behaviour:?}"),
                protocol,
                answer,
                behaviour,
                status,
            });
        };
        for (head, status) in FORWARD_AUTH {
            let answer = forward_auth(head, behaviour);
            add(
                Protocol::ForwardAuth,
                format!("{head:?}"),
                answer,
                Some(status),
            );
        }
        for (statuses, status) in EXT_AUTHZ {
            let answer = ext_authz(statuses, behaviour);
            add(
                Protocol::ExtAuthz,
                format!("{statuses:?}"),
                answer,
                Some(status),
            );
        }
        for (fields, status) in NATIVE {
            let is_whole = behaviour == BodyBehaviour::Fits;
            // Without its end, the frame has no status that counts.
            let cut = if status == 429 || status == 401 {
                403
            } else {
                status
            };
            let status = if is_whole { status } else { cut };
            let answer = native(fields, behaviour);
            add(Protocol::Native, fields.to_owned(), answer, Some(status));
        }
    }
    cases.extend(heads());
    cases.extend(failures());
    cases
}

/// Denials with an incomplete head.
fn heads() -> Vec<Case> {
    let large = format!(
        "302 Found\r\nLocation: /{}\r\n\r\n",
        "x".repeat(LARGE_BYTES)
    );
    let cut = "403 Forbidden\r\nX-Why: ".to_owned();
    let cut_line = "403 F".to_owned();
    let bad = "404 Not Found\r\nX-Why : a\r\n\r\n".to_owned();
    [
        (large, BodyBehaviour::Stalls, 403),
        (cut.clone(), BodyBehaviour::Stalls, 403),
        (cut.clone(), BodyBehaviour::BreaksOff, 403),
        (cut, BodyBehaviour::Trickles, 403),
        (cut_line, BodyBehaviour::Stalls, 403),
        (bad, BodyBehaviour::Stalls, 404),
    ]
    .into_iter()
    .map(|(head, behaviour, status)| Case {
        name: format!("head {head:.30} {behaviour:?}"),
        protocol: Protocol::ForwardAuth,
        answer: format!("HTTP/1.1 {head}").into_bytes(),
        behaviour,
        status: Some(status),
    })
    .collect()
}

/// Answers that do not deny, and fail.
fn failures() -> Vec<Case> {
    let case = |protocol, name: &str, answer: Vec<u8>, behaviour| Case {
        name: name.to_owned(),
        protocol,
        answer,
        behaviour,
        status: None,
    };
    let stalls = BodyBehaviour::Stalls;
    let large = BodyBehaviour::TooLarge;
    let allowing = field(1, &number(1, 0));
    vec![
        case(
            Protocol::ForwardAuth,
            "an allowance with a body that is too large",
            forward_auth("200 OK\r\n", large),
            large,
        ),
        case(
            Protocol::ForwardAuth,
            "an interim response alone",
            b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(),
            stalls,
        ),
        case(
            Protocol::ForwardAuth,
            "half a status",
            b"HTTP/1.1 40".to_vec(),
            stalls,
        ),
        case(
            Protocol::ExtAuthz,
            "an allowance without trailers",
            grpc(&allowing, BodyBehaviour::Fits),
            stalls,
        ),
        case(
            Protocol::Native,
            "an allowance that is too large",
            native(r#""decision":"allow""#, large),
            large,
        ),
    ]
}

/// Starts an agent that answers each request with the answer of `case`.
fn start(case: &Case, path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    let case = case.clone();
    thread::spawn(move || {
        while let Ok((stream, _)) = listener.accept() {
            let case = case.clone();
            // The connection may end at any time.
            thread::spawn(move || serve(stream, &case).unwrap_or_default());
        }
    });
}

fn serve(mut stream: UnixStream, case: &Case) -> std::io::Result<()> {
    match case.protocol {
        Protocol::Native => {
            read_native(&mut stream)?;
            let welcome = r#"{"id":0,"version":1,"encoding":"json","agent":"fake/1",
                "wants":{"request_body":"none"}}"#;
            stream.write_all(&native_frame(0x02, BodyBehaviour::Fits, welcome))?;
            read_native(&mut stream)?;
        }
        Protocol::ForwardAuth => {
            let mut head = Vec::new();
            while !head.ends_with(b"\r\n\r\n") {
                let mut byte = [0];
                stream.read_exact(&mut byte)?;
                head.push(byte[0]);
            }
        }
        Protocol::ExtAuthz => read_call(&mut stream)?,
    }
    stream.write_all(&case.answer)?;
    match case.behaviour {
        BodyBehaviour::Fits | BodyBehaviour::BreaksOff => Ok(()),
        BodyBehaviour::TooLarge | BodyBehaviour::Stalls => wait_for_end(&mut stream, case.protocol),
        BodyBehaviour::Trickles => {
            let mut reader = stream.try_clone()?;
            let protocol = case.protocol;
            thread::spawn(move || {
                wait_for_end(&mut reader, protocol).unwrap_or_default();
                reader.shutdown(Shutdown::Both)
            });
            let byte = match protocol {
                Protocol::Native | Protocol::ForwardAuth => b"x".to_vec(),
                Protocol::ExtAuthz => frame(0, 0, 1, b"x"),
            };
            loop {
                stream.write_all(&byte)?;
                thread::park_timeout(TRICKLE_INTERVAL);
            }
        }
    }
}

/// Reads until the proxy has abandoned the call.
fn wait_for_end(stream: &mut UnixStream, protocol: Protocol) -> std::io::Result<()> {
    match protocol {
        Protocol::Native | Protocol::ForwardAuth => stream.read_exact(&mut [0]),
        Protocol::ExtAuthz => loop {
            if let (3, _) = read_frame(stream)? {
                return Ok(());
            }
        },
    }
}

fn read_native(stream: &mut UnixStream) -> std::io::Result<()> {
    let mut length = [0; 4];
    stream.read_exact(&mut length)?;
    let mut payload = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap()];
    stream.read_exact(&mut payload)
}

/// Reads until the end of a call on the stream 1.
fn read_call(stream: &mut UnixStream) -> std::io::Result<()> {
    let mut preface = [0; 24];
    stream.read_exact(&mut preface)?;
    stream.write_all(&frame(4, 0, 0, b""))?;
    loop {
        match read_frame(stream)? {
            (4, 0) => stream.write_all(&frame(4, 1, 0, b""))?,
            (0, 1) => return Ok(()),
            _ => {}
        }
    }
}

/// Type and flags of the next frame of HTTP/2.
fn read_frame(stream: &mut UnixStream) -> std::io::Result<(u8, u8)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let [high, middle, low, kind, flags, ..] = head;
    let length = usize::from(high) << 16 | usize::from(middle) << 8 | usize::from(low);
    stream.read_exact(&mut vec![0; length])?;
    Ok((kind, flags))
}

/// A proxy with a route, `/INDEX/`, and an agent for each case. One failure opens an agent's
/// breaker.
fn proxy(cases: &[Case], mode: &str, upstream: &Upstream) -> (Proxy, TempDir) {
    let folder = TempDir::new().unwrap();
    let mut config = Config::to(upstream);
    let mut agents = String::new();
    for (index, case) in cases.iter().enumerate() {
        let path: PathBuf = folder.path().join(format!("{index}.sock"));
        start(case, &path);
        let protocol = match case.protocol {
            Protocol::Native => "",
            Protocol::ForwardAuth => "protocol \"forward-auth\"",
            Protocol::ExtAuthz => "protocol \"ext-authz\"",
        };
        writeln!(
            agents,
            "agent \"a{index}\" {{ unix-socket \"{}\"; failure-mode \"{mode}\"; {protocol}
                timeout-ms {TIMEOUT_MS}
                circuit-breaker {{ failure-threshold 1; timeout-seconds 600 }} }}",
            path.display()
        )
        .unwrap();
        let route =
            format!("matches {{ path-prefix \"/{index}/\" }}; upstream \"u\"; agents \"a{index}\"");
        config = config.route(&format!("r{index}"), &route);
    }
    let proxy = config.top(&format!("agents {{ {agents} }}")).start();
    (proxy, folder)
}

fn play(mode: &str) {
    let upstream = Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    });
    let cases = cases();
    let (proxy, _folder) = proxy(&cases, mode, &upstream);
    let mut forwarded = 0;
    for round in 0..2 {
        let mut clients: Vec<_> = cases.iter().map(|_| proxy.connect()).collect();
        for (index, client) in clients.iter_mut().enumerate() {
            client.send(get(&format!("/{index}/"), &[]));
        }
        for (case, client) in cases.iter().zip(&mut clients) {
            let name = format!("{} {mode} round {round}", case.name);
            let response = client.response();
            let record = proxy.access_record(&response.correlation_id());
            let decision = record.text("agent_decision");
            match case.status {
                Some(status) => {
                    assert_eq!(response.status, status, "{name}");
                    assert!(!decision.starts_with("failed"), "{name}: {decision}");
                    let is_agents = response.text() == "xxxx";
                    let is_fit = case.behaviour == BodyBehaviour::Fits;
                    if case.protocol != Protocol::Native {
                        assert_eq!(is_agents, is_fit, "{name}: {}", response.text());
                    }
                }
                None if mode == "open" => {
                    assert_eq!(response.text(), "served", "{name}");
                    assert_eq!(decision, "failed_open", "{name}");
                    forwarded += 1;
                }
                None => {
                    assert!(500 <= response.status, "{name}: {}", response.status);
                    assert_eq!(decision, "failed", "{name}");
                }
            }
        }
    }
    assert_eq!(upstream.requests().len(), forwarded);
}

#[test]
fn a_denial_counts_under_an_open_failure_mode_whatever_its_body_does() {
    play("open");
}

#[test]
fn a_denial_counts_under_a_closed_failure_mode_whatever_its_body_does() {
    play("closed");
}
