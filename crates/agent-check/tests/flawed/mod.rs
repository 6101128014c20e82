//! A small agent with one selectable defect.

use agent_protocol::{
    AgentMessage, Allow, BODY_PARTS, BodyMode, Decision, DecisionMessage, Encoding, ErrorCode,
    ErrorMessage, HeaderEdit, Hello, Metadata, PROTOCOL_VERSION, ProxyMessage, RequestId, Wants,
    Welcome, read_frame,
};
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const LIMIT: usize = 2 << 20;

/// The fault of the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    None,
    Silent,
    ClosesAtOnce,
    GarbageWelcome,
    OtherVersion,
    OtherEncoding,
    SpeaksFirst,
    AnyVersion,
    StrictEvents,
    WrongId,
    WrongSeq,
    UnknownField,
    ProtectedHeader,
    DecidesTwice,
    HalfDecision,
    TooLongDecision,
    Utf8Only,
    RoundsIds,
    OneFrameOfEachRead,
    LateEdits,
    AnswersCompletion,
    AnswersCancel,
    NeedsWholeFrames,
    OneConnection,
    KeepsBrokenConnections,
    DiesOfBrokenConnections,
    NeedsNoHello,
    DecidesParts,
}

/// A listening agent. It ends with its process.
pub(crate) struct FlawedAgent {
    path: PathBuf,
}

impl FlawedAgent {
    pub(crate) fn start(path: &Path, flaw: Flaw) -> Self {
        let listener = UnixListener::bind(path).unwrap();
        let is_dead = Arc::new(AtomicBool::new(false));
        thread::spawn(move || {
            for stream in listener.incoming() {
                let connection = Connection {
                    stream: stream.unwrap(),
                    flaw,
                    is_dead: Arc::clone(&is_dead),
                    has_hello: flaw == Flaw::NeedsNoHello,
                    has_parts: false,
                };
                if flaw == Flaw::OneConnection {
                    connection.serve();
                } else {
                    thread::spawn(|| connection.serve());
                }
            }
        });
        Self {
            path: path.to_path_buf(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

struct Connection {
    stream: UnixStream,
    flaw: Flaw,
    /// Set by a connection that ends all connections.
    is_dead: Arc<AtomicBool>,
    has_hello: bool,
    has_parts: bool,
}

impl Connection {
    fn serve(mut self) {
        if self.flaw == Flaw::ClosesAtOnce || self.is_dead.load(Ordering::Relaxed) {
            return;
        }
        if self.flaw == Flaw::SpeaksFirst {
            self.send(&error("hello"));
        }
        let mut input = Vec::new();
        let mut piece = vec![0; 1 << 16];
        while let Ok(length) = self.stream.read(&mut piece) {
            if length == 0 || self.is_dead.load(Ordering::Relaxed) {
                return;
            }
            input.extend(piece.iter().take(length));
            if !self.consume(&mut input) {
                return;
            }
            if self.flaw == Flaw::NeedsWholeFrames {
                input.clear();
            }
        }
    }

    /// Handles all whole frames; `false` ends the connection.
    fn consume(&mut self, input: &mut Vec<u8>) -> bool {
        loop {
            let message = match read_frame(input, LIMIT) {
                Ok(None) => return true,
                Ok(Some((frame, length))) => {
                    let is_strict = self.flaw == Flaw::StrictEvents;
                    let is_later = frame.payload.windows(7).any(|part| part == b"a_later");
                    let message = ProxyMessage::decode(frame, Encoding::Json).ok();
                    input.drain(..length);
                    message.filter(|_| !(is_strict && is_later))
                }
                Err(_) => None,
            };
            let Some(message) = message else {
                return self.refuse(input);
            };
            if !self.answer(message) {
                return false;
            }
            if self.flaw == Flaw::OneFrameOfEachRead {
                input.clear();
            }
        }
    }

    fn refuse(&mut self, input: &mut Vec<u8>) -> bool {
        if self.flaw == Flaw::KeepsBrokenConnections {
            input.clear();
            return true;
        }
        if self.flaw == Flaw::DiesOfBrokenConnections {
            self.is_dead.store(true, Ordering::Relaxed);
        }
        self.send(&error("not understood"));
        false
    }

    fn answer(&mut self, message: ProxyMessage<'static>) -> bool {
        self.has_hello |= matches!(message, ProxyMessage::Hello(_));
        if !self.has_hello {
            return false;
        }
        match message {
            ProxyMessage::Hello(hello) => return self.greet(&hello),
            ProxyMessage::RequestHeaders(event) => {
                let is_utf8 = event.target.to_str().is_some();
                if self.flaw == Flaw::Utf8Only && !is_utf8 {
                    return false;
                }
                self.decide(event.id, event.seq, false);
            }
            ProxyMessage::RequestBody(event) if self.has_parts && !event.last => {
                if self.flaw == Flaw::DecidesParts {
                    self.decide(event.id, event.seq, false);
                }
            }
            ProxyMessage::RequestBody(event) => {
                let seq = if self.flaw == Flaw::WrongSeq {
                    0
                } else {
                    event.seq
                };
                self.decide(event.id, seq, false);
            }
            ProxyMessage::ResponseHeaders(event) => self.decide(event.id, event.seq, true),
            ProxyMessage::ResponseBody(event) => self.decide(event.id, event.seq, true),
            ProxyMessage::Completion(event) if self.flaw == Flaw::AnswersCompletion => {
                self.decide(event.id, 0, false);
            }
            ProxyMessage::Cancel(cancel) if self.flaw == Flaw::AnswersCancel => {
                self.decide(cancel.id, 0, false);
            }
            ProxyMessage::Completion(_) | ProxyMessage::Cancel(_) => (),
            ProxyMessage::Error(_) => return false,
        }
        true
    }

    fn greet(&mut self, hello: &Hello) -> bool {
        match self.flaw {
            Flaw::Silent => return true,
            Flaw::GarbageWelcome => {
                self.stream
                    .write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                    .unwrap();
                return false;
            }
            _ => (),
        }
        let is_known = hello.versions.contains(&PROTOCOL_VERSION);
        if !is_known && self.flaw != Flaw::AnyVersion {
            self.send(&error("no common version"));
            return false;
        }
        let is_other = self.flaw == Flaw::OtherVersion;
        let encoding = if self.flaw == Flaw::OtherEncoding {
            Encoding::MessagePack
        } else {
            Encoding::Json
        };
        let offered = hello.features.iter();
        let features: Vec<_> = offered
            .filter(|name| *name == BODY_PARTS)
            .cloned()
            .collect();
        self.has_parts = !features.is_empty();
        let request_body = if self.has_parts {
            BodyMode::Buffered
        } else {
            BodyMode::Chunks
        };
        self.send(&AgentMessage::Welcome(Welcome {
            id: RequestId::CONNECTION,
            version: if is_other { 7 } else { PROTOCOL_VERSION },
            encoding,
            agent: "flawed/1".to_owned(),
            wants: Wants {
                request_body,
                response_headers: true,
                response_body: BodyMode::Buffered,
                completion: true,
            },
            features,
        }));
        true
    }

    fn decide(&mut self, id: RequestId, seq: u32, is_response: bool) {
        let id = match self.flaw {
            Flaw::WrongId => RequestId::new(id.get() + 1_000).unwrap_or(id),
            Flaw::RoundsIds => rounded(id),
            _ => id,
        };
        let mut allow = Allow::default();
        let names = match self.flaw {
            Flaw::ProtectedHeader => vec!["host"],
            Flaw::LateEdits if is_response => vec!["x-late"],
            _ => Vec::new(),
        };
        let edits = names
            .into_iter()
            .map(|name| HeaderEdit::set(name, "a").unwrap());
        allow.request_headers.extend(edits);
        if self.flaw == Flaw::TooLongDecision {
            let mut metadata = Metadata::default();
            for key in 0..16 {
                assert!(metadata.insert(&key.to_string(), &"x".repeat(1_000)));
            }
            allow.metadata = metadata;
        }
        let decision = Decision::Allow(allow);
        let message = AgentMessage::Decision(DecisionMessage { id, seq, decision });
        match self.flaw {
            Flaw::DecidesTwice => {
                self.send(&message);
                self.send(&message);
            }
            Flaw::HalfDecision => {
                let frame = encoded(&message);
                let half = frame.get(..frame.len() / 2).unwrap();
                self.write(half);
            }
            Flaw::UnknownField => {
                let mut frame = b"\0\0\0\0\x20".to_vec();
                let text =
                    format!("{{\"id\":{id},\"seq\":{seq},\"decision\":\"allow\",\"why\":1}}");
                frame.extend_from_slice(text.as_bytes());
                let length = u32::try_from(frame.len() - 4).unwrap();
                frame.splice(..4, length.to_be_bytes());
                self.write(&frame);
            }
            _ => self.send(&message),
        }
    }

    fn send(&mut self, message: &AgentMessage<'_>) {
        self.write(&encoded(message));
    }

    fn write(&mut self, bytes: &[u8]) {
        // The check may have closed its end.
        drop(self.stream.write_all(bytes));
    }
}

/// Like a language with 24-bit precision of numbers.
fn rounded(id: RequestId) -> RequestId {
    let is_small = id.get() < 1 << 24;
    let kept = if is_small { id.get() } else { id.get() & !1 };
    RequestId::new(kept).unwrap_or(id)
}

fn encoded(message: &AgentMessage<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    message.encode(Encoding::Json, LIMIT, &mut bytes).unwrap();
    bytes
}

fn error(message: &'static str) -> AgentMessage<'static> {
    AgentMessage::Error(ErrorMessage {
        id: RequestId::CONNECTION,
        code: ErrorCode::Protocol,
        message: message.into(),
    })
}
