//! A scripted agent on a Unix socket.

pub(crate) mod process;

use crate::journal::Journal;
use agent_protocol::{
    AgentMessage, Allow, Block, Decision, DecisionMessage, Encoding, ErrorCode, ErrorMessage,
    ProxyMessage, RequestId, Wants, Welcome, read_frame,
};
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tempfile::TempDir;

const MAX_FRAME_BYTES: usize = 64 << 20;

/// A fake agent that records every event. Its connections are closed on drop.
#[derive(Debug)]
pub struct FakeAgent {
    path: PathBuf,
    events: Journal<ProxyMessage<'static>>,
    streams: Journal<Arc<UnixStream>>,
    /// Dropped last: the socket is in it.
    folder: Option<TempDir>,
}

/// An agent's reaction to an event.
#[derive(Clone, Debug)]
pub enum AgentReply {
    /// Decides.
    Decide(Decision),
    /// Reports a failure in place of a decision.
    Fail(ErrorCode),
    /// Does not answer.
    Silence,
    /// Writes these bytes.
    Bytes(Vec<u8>),
    /// Closes the connection.
    HangUp,
}

/// The id and number of an event that requires a decision; `None` for other messages.
#[must_use]
pub fn event_number(event: &ProxyMessage<'_>) -> Option<(RequestId, u32)> {
    match event {
        ProxyMessage::RequestHeaders(event) => Some((event.id, event.seq)),
        ProxyMessage::RequestBody(event) | ProxyMessage::ResponseBody(event) => {
            Some((event.id, event.seq))
        }
        ProxyMessage::ResponseHeaders(event) => Some((event.id, event.seq)),
        ProxyMessage::Hello(_)
        | ProxyMessage::Completion(_)
        | ProxyMessage::Cancel(_)
        | ProxyMessage::Error(_) => None,
    }
}

impl AgentReply {
    /// Allows without edits.
    #[must_use]
    pub fn allow() -> Self {
        Self::Decide(Decision::Allow(Allow::default()))
    }

    /// Refuses with the proxy's own 403.
    #[must_use]
    pub fn block() -> Self {
        Self::Decide(Decision::Block(Block::default()))
    }

    /// The frame of a decision on another event than the one sent.
    #[must_use]
    pub fn misnumbered(id: u64, seq: u32) -> Self {
        let id = RequestId::new(id).expect("an id of a test is small");
        Self::Bytes(decision_frame(
            Encoding::Json,
            (id, seq),
            Decision::Allow(Allow::default()),
        ))
    }
}

impl FakeAgent {
    /// An agent that requests `wants` and executes `script`.
    pub fn start(
        wants: Wants,
        script: impl Fn(&ProxyMessage<'static>) -> AgentReply + Send + Sync + 'static,
    ) -> Self {
        let folder = TempDir::new().expect("a folder for a socket");
        let path = folder.path().join("agent.sock");
        let mut agent = Self::start_at(&path, wants, script);
        agent.folder = Some(folder);
        agent
    }

    /// Like [`Self::start`], on a socket at `path`.
    pub fn start_at(
        path: &Path,
        wants: Wants,
        script: impl Fn(&ProxyMessage<'static>) -> AgentReply + Send + Sync + 'static,
    ) -> Self {
        drop(std::fs::remove_file(path));
        let listener = UnixListener::bind(path).expect("a socket can be bound");
        let agent = Self {
            path: path.to_owned(),
            events: Journal::default(),
            streams: Journal::default(),
            folder: None,
        };
        let (events, streams) = (agent.events.clone(), agent.streams.clone());
        let script = Arc::new(script);
        thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let stream = Arc::new(stream);
                streams.push(Arc::clone(&stream));
                let (events, script) = (events.clone(), Arc::clone(&script));
                thread::spawn(move || serve(&stream, wants, (&events, &*script)));
            }
        });
        agent
    }

    /// The path of its socket.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The events so far, without handshakes.
    #[must_use]
    pub fn events(&self) -> Vec<ProxyMessage<'static>> {
        self.events.entries()
    }

    /// Waits until there are `count` events, and returns all.
    #[track_caller]
    pub fn wait_for_events(&self, count: usize) -> Vec<ProxyMessage<'static>> {
        self.events.wait_for(count)
    }

    /// Number of connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.streams.len()
    }

    /// Closes all connections.
    pub fn hang_up(&self) {
        for stream in self.streams.entries() {
            drop(stream.shutdown(Shutdown::Both));
        }
    }
}

impl Drop for FakeAgent {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.path));
        self.hang_up();
    }
}

type Script<'s> = (
    &'s Journal<ProxyMessage<'static>>,
    &'s dyn Fn(&ProxyMessage<'static>) -> AgentReply,
);

fn serve(stream: &Arc<UnixStream>, wants: Wants, (events, script): Script<'_>) {
    let mut encoding = Encoding::Json;
    let mut input = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        while let Some((message, length)) = next_message(&input, encoding) {
            input.drain(..length);
            let reply = if let ProxyMessage::Hello(hello) = &message {
                encoding = if hello.offers(Encoding::MessagePack) {
                    Encoding::MessagePack
                } else {
                    Encoding::Json
                };
                welcome(encoding, wants)
            } else {
                let reply = script(&message);
                let number = event_number(&message);
                events.push(message);
                match (reply, number) {
                    (AgentReply::Decide(decision), Some(number)) => {
                        decision_frame(encoding, number, decision)
                    }
                    (AgentReply::Fail(code), Some((id, _))) => failure_frame(encoding, id, code),
                    (AgentReply::Bytes(bytes), _) => bytes,
                    (AgentReply::HangUp, _) => {
                        drop(stream.shutdown(Shutdown::Both));
                        return;
                    }
                    _ => Vec::new(),
                }
            };
            if (&**stream).write_all(&reply).is_err() {
                return;
            }
        }
        match (&**stream).read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(read) => input.extend_from_slice(piece.get(..read).unwrap_or_default()),
        }
    }
}

fn next_message(input: &[u8], encoding: Encoding) -> Option<(ProxyMessage<'static>, usize)> {
    let (frame, length) =
        read_frame(input, MAX_FRAME_BYTES).expect("the proxy's frames are right")?;
    let message = ProxyMessage::decode(frame, encoding).expect("the proxy's messages are right");
    Some((message, length))
}

fn welcome(encoding: Encoding, wants: Wants) -> Vec<u8> {
    encoded(
        &AgentMessage::Welcome(Welcome {
            id: RequestId::CONNECTION,
            version: agent_protocol::PROTOCOL_VERSION,
            encoding,
            agent: "fake/1".to_owned(),
            wants,
            features: Vec::new(),
        }),
        Encoding::Json,
    )
}

fn decision_frame(encoding: Encoding, (id, seq): (RequestId, u32), decision: Decision) -> Vec<u8> {
    let message = AgentMessage::Decision(DecisionMessage { id, seq, decision });
    encoded(&message, encoding)
}

fn failure_frame(encoding: Encoding, id: RequestId, code: ErrorCode) -> Vec<u8> {
    let message = AgentMessage::Error(ErrorMessage {
        id,
        code,
        message: "as the test says".into(),
    });
    encoded(&message, encoding)
}

fn encoded(message: &AgentMessage<'_>, encoding: Encoding) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = message.encode(encoding, MAX_FRAME_BYTES, &mut bytes);
    written.expect("a message of a test is small");
    bytes
}
