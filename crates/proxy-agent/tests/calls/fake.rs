//! An agent that reads the events of a connection in sequence, like one with a thread per
//! connection.

use agent_protocol::{
    AgentMessage, Allow, BODY_PARTS, BodyMode, Decision, DecisionMessage, Drain, Encoding,
    ProxyMessage, RequestId, Wants, Welcome, read_frame,
};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::Notify;

const MAX_FRAME_BYTES: usize = 64 << 20;

/// The agent's reaction to an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reaction {
    Allow,
    Ignore,
    /// Allows, and takes no further requests on the connection.
    Drain,
    /// Stops reading on the connection until [`FakeAgent::resume`].
    Pause,
}

type Script = Box<dyn Fn(&ProxyMessage<'static>) -> Reaction>;

/// An agent and the events that it got.
pub(crate) struct FakeAgent {
    shared: Rc<Shared>,
    folder: TempDir,
}

struct Shared {
    script: Script,
    has_parts: bool,
    events: RefCell<Vec<ProxyMessage<'static>>>,
    connections: Cell<usize>,
    ended: Cell<usize>,
    changed: Notify,
    is_paused: Cell<bool>,
    resumed: Notify,
}

impl FakeAgent {
    pub(crate) fn start(
        has_parts: bool,
        script: impl Fn(&ProxyMessage<'static>) -> Reaction + 'static,
    ) -> Self {
        let folder = TempDir::new().unwrap();
        let listener = UnixListener::bind(folder.path().join("agent.sock")).unwrap();
        let shared = Rc::new(Shared {
            script: Box::new(script),
            has_parts,
            events: RefCell::default(),
            connections: Cell::new(0),
            ended: Cell::new(0),
            changed: Notify::new(),
            is_paused: Cell::new(true),
            resumed: Notify::new(),
        });
        let accepting = Rc::clone(&shared);
        tokio::task::spawn_local(async move {
            while let Ok((stream, _)) = listener.accept().await {
                accepting.connections.set(accepting.connections.get() + 1);
                let shared = Rc::clone(&accepting);
                tokio::task::spawn_local(async move {
                    serve(&shared, stream).await;
                    shared.ended.set(shared.ended.get() + 1);
                    shared.changed.notify_waiters();
                });
            }
        });
        Self { shared, folder }
    }

    pub(crate) fn socket(&self) -> impl AsRef<Path> {
        self.folder.path().join("agent.sock")
    }

    pub(crate) fn connections(&self) -> usize {
        self.shared.connections.get()
    }

    pub(crate) fn ended_connections(&self) -> usize {
        self.shared.ended.get()
    }

    pub(crate) fn events(&self) -> Vec<ProxyMessage<'static>> {
        self.shared.events.borrow().clone()
    }

    /// Waits until `is_met` returns true for this agent.
    pub(crate) async fn wait_until(&self, is_met: impl Fn(&Self) -> bool) {
        loop {
            let changed = self.shared.changed.notified();
            if is_met(self) {
                return;
            }
            changed.await;
        }
    }

    /// Ends all pauses, current and later ones.
    pub(crate) fn resume(&self) {
        self.shared.is_paused.set(false);
        self.shared.resumed.notify_waiters();
    }
}

async fn serve(shared: &Shared, mut stream: UnixStream) {
    let mut input = Vec::new();
    loop {
        while let Some((message, length)) = next(&input) {
            input.drain(..length);
            let answer = react(shared, message).await;
            if stream.write_all(&answer).await.is_err() {
                return;
            }
        }
        match stream.read_buf(&mut input).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

fn next(input: &[u8]) -> Option<(ProxyMessage<'static>, usize)> {
    let (frame, length) = read_frame(input, MAX_FRAME_BYTES).unwrap()?;
    Some((ProxyMessage::decode(frame, Encoding::Json).unwrap(), length))
}

async fn react(shared: &Shared, message: ProxyMessage<'static>) -> Vec<u8> {
    let number = match &message {
        ProxyMessage::Hello(hello) => {
            let offered = hello.features.iter();
            let features = offered.filter(|name| shared.has_parts && *name == BODY_PARTS);
            return welcome(features.cloned().collect());
        }
        ProxyMessage::RequestHeaders(event) => Some((event.id, event.seq)),
        ProxyMessage::RequestBody(event) if event.last => Some((event.id, event.seq)),
        ProxyMessage::ResponseHeaders(event) => Some((event.id, event.seq)),
        _ => None,
    };
    let reaction = (shared.script)(&message);
    shared.events.borrow_mut().push(message);
    shared.changed.notify_waiters();
    let resumed = shared.resumed.notified();
    if reaction == Reaction::Pause && shared.is_paused.get() {
        resumed.await;
    }
    let mut answer = match number {
        Some(number) if reaction != Reaction::Ignore => allow(number),
        _ => Vec::new(),
    };
    if reaction == Reaction::Drain {
        let id = RequestId::CONNECTION;
        answer.extend(encoded(&AgentMessage::Drain(Drain { id })));
    }
    answer
}

fn welcome(features: Vec<String>) -> Vec<u8> {
    encoded(&AgentMessage::Welcome(Welcome {
        id: RequestId::CONNECTION,
        version: agent_protocol::PROTOCOL_VERSION,
        encoding: Encoding::Json,
        agent: "fake/1".to_owned(),
        wants: Wants {
            request_body: BodyMode::Buffered,
            response_headers: true,
            ..Wants::default()
        },
        features,
    }))
}

fn allow((id, seq): (RequestId, u32)) -> Vec<u8> {
    let decision = Decision::Allow(Allow::default());
    encoded(&AgentMessage::Decision(DecisionMessage {
        id,
        seq,
        decision,
    }))
}

fn encoded(message: &AgentMessage<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    let written = message.encode(Encoding::Json, MAX_FRAME_BYTES, &mut bytes);
    written.unwrap();
    bytes
}
