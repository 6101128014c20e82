//! A connection to an agent, shared by the requests of one worker.

use crate::error::CallError;
use agent_protocol::{
    AgentMessage, Block, Cancel, Decision, DecisionPrefix, Encoding, ErrorCode, ErrorMessage,
    Hello, PROTOCOL_VERSION, ProxyMessage, RequestId, Wants, Welcome,
};
use proxy_model::AgentEncoding;
use proxy_plan::AgentEndpoint;
use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::task::Waker;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, oneshot};

/// Unsent bytes above which the agent gets no further event.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// Unsent bytes that are written at once, not at the end of the round.
const MAX_COLLECTED_BYTES: usize = 32 << 10;
/// Calls given up in a row, without a byte from the agent, after which the connection is closed.
const MAX_UNANSWERED: u32 = 32;

/// A connection. Its driver, a task, connects, reads and writes: events of requests that are served in one
/// round of the worker leave in one write.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) endpoint: Arc<AgentEndpoint>,
    hello: Hello,
    state: RefCell<State>,
    stream: OnceCell<OwnedWriteHalf>,
    /// Wakes the driver, to write or to end.
    driver: RefCell<Option<Waker>>,
    /// The end of the handshake or of the connection.
    changed: Notify,
}

#[derive(Debug)]
struct State {
    phase: Phase,
    was_ready: bool,
    /// Events; the first `sent` bytes are written.
    unsent: Vec<u8>,
    sent: usize,
    next_id: u64,
    /// By id of the request.
    waiting: HashMap<u64, Waiting>,
    /// Answers that may come to calls that were given up.
    late: u32,
    /// Calls given up since the agent last sent something.
    unanswered: u32,
}

#[derive(Debug)]
enum Phase {
    Opening,
    Ready(Agreement),
    Closed(CallError),
}

/// The result of the handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreement {
    pub(crate) encoding: Encoding,
    pub(crate) wants: Wants,
    /// The agent takes no further requests on this connection.
    draining: bool,
}

/// A call without an answer.
#[derive(Debug)]
struct Waiting {
    seq: u32,
    /// A denial has begun to arrive.
    is_denied: bool,
    answer: oneshot::Sender<Result<Decision, CallError>>,
}

impl Connection {
    pub(crate) fn new(endpoint: Arc<AgentEndpoint>) -> Self {
        Self {
            hello: hello(&endpoint),
            endpoint,
            state: RefCell::new(State {
                phase: Phase::Opening,
                was_ready: false,
                unsent: Vec::new(),
                sent: 0,
                next_id: 1,
                waiting: HashMap::new(),
                late: 0,
                unanswered: 0,
            }),
            stream: OnceCell::new(),
            driver: RefCell::new(None),
            changed: Notify::new(),
        }
    }

    /// Calls without an answer.
    pub(crate) fn load(&self) -> usize {
        self.state.borrow().waiting.len()
    }

    /// Whether it takes further requests, now or after its handshake.
    pub(crate) fn takes_requests(&self) -> bool {
        match &self.state.borrow().phase {
            Phase::Opening => true,
            Phase::Ready(agreement) => !agreement.draining,
            Phase::Closed(_) => false,
        }
    }

    /// Whether the handshake is over and the connection open.
    pub(crate) fn is_ready(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Ready(_))
    }

    /// The error of a connection that ended before its handshake was over.
    pub(crate) fn failed_to_open(&self) -> Option<CallError> {
        let state = self.state.borrow();
        match &state.phase {
            Phase::Closed(error) if !state.was_ready => Some(error.clone()),
            Phase::Opening | Phase::Ready(_) | Phase::Closed(_) => None,
        }
    }

    /// Waits for the handshake.
    pub(crate) async fn ready(&self) -> Result<Agreement, CallError> {
        loop {
            let changed = self.changed.notified();
            match &self.state.borrow().phase {
                Phase::Ready(agreement) => return Ok(*agreement),
                Phase::Closed(error) => return Err(error.clone()),
                Phase::Opening => {}
            }
            changed.await;
        }
    }

    /// A new request's id.
    pub(crate) fn next_id(&self) -> Result<RequestId, CallError> {
        let mut state = self.state.borrow_mut();
        let id = RequestId::new(state.next_id).ok_or(CallError::Closed)?;
        state.next_id += 1;
        Ok(id)
    }

    /// Sends `event`, and expects an answer to it.
    pub(crate) fn call(
        &self,
        (id, seq): (RequestId, u32),
        event: &ProxyMessage<'_>,
    ) -> Result<oneshot::Receiver<Result<Decision, CallError>>, CallError> {
        let (answer, receiver) = oneshot::channel();
        self.send(event)?;
        let waiting = Waiting {
            seq,
            is_denied: false,
            answer,
        };
        self.state.borrow_mut().waiting.insert(id.get(), waiting);
        Ok(receiver)
    }

    /// Sends `message` without expecting an answer.
    pub(crate) fn send(&self, message: &ProxyMessage<'_>) -> Result<(), CallError> {
        {
            let mut state = self.state.borrow_mut();
            let encoding = match &state.phase {
                Phase::Ready(agreement) => agreement.encoding,
                Phase::Closed(error) => return Err(error.clone()),
                Phase::Opening => return Err(CallError::Closed),
            };
            if MAX_UNSENT_BYTES < state.unsent.len() - state.sent {
                let text = "the agent does not read its events";
                return Err(CallError::Overloaded(text.to_owned()));
            }
            let limit = self.hello.max_event_bytes;
            let encoded = message.encode(encoding, limit, &mut state.unsent);
            encoded.map_err(|error| CallError::Overloaded(error.to_string()))?;
        }
        self.flush_much();
        Ok(())
    }

    /// Gives up the call of request `id`, if it has no answer yet. Returns whether a denial has begun to
    /// arrive.
    pub(crate) fn give_up(&self, id: RequestId) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(Waiting { is_denied, .. }) = state.waiting.remove(&id.get()) else {
            return false;
        };
        state.late = state.late.saturating_add(1);
        state.unanswered += 1;
        let is_silent = MAX_UNANSWERED <= state.unanswered;
        drop(state);
        if is_silent {
            self.close(&CallError::Unreachable(
                "the agent does not answer".to_owned(),
            ));
        }
        is_denied
    }

    /// Tells the agent that request `id` does not concern it any more.
    pub(crate) fn cancel(&self, id: RequestId) {
        // A connection that is closed or full is told nothing.
        self.send(&ProxyMessage::Cancel(Cancel { id }))
            .unwrap_or_default();
    }

    /// Closes the connection: every call without an answer fails.
    pub(crate) fn close(&self, error: &CallError) {
        let waiting = {
            let mut state = self.state.borrow_mut();
            if matches!(state.phase, Phase::Closed(_)) {
                return;
            }
            state.phase = Phase::Closed(error.clone());
            state.unsent = Vec::new();
            state.sent = 0;
            std::mem::take(&mut state.waiting)
        };
        for Waiting {
            is_denied, answer, ..
        } in waiting.into_values()
        {
            let result = if is_denied {
                Ok(Decision::Block(Block::default()))
            } else {
                Err(error.clone())
            };
            // The caller may be gone.
            answer.send(result).unwrap_or_default();
        }
        self.changed.notify_waiters();
        self.wake_driver();
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Closed(_))
    }

    pub(crate) fn stream(&self) -> Option<&UnixStream> {
        self.stream.get().map(OwnedWriteHalf::as_ref)
    }

    /// Begins the handshake on `stream`, which the driver reads.
    pub(crate) fn greet(&self, stream: UnixStream) -> Result<OwnedReadHalf, CallError> {
        let (reader, writer) = stream.into_split();
        let hello = ProxyMessage::Hello(self.hello.clone());
        let mut state = self.state.borrow_mut();
        let limit = agent_protocol::MAX_HANDSHAKE_BYTES;
        let written = hello.encode(Encoding::Json, limit, &mut state.unsent);
        self.stream.set(writer).unwrap_or_default();
        written.map_err(|error| CallError::BadReply(error.to_string()))?;
        Ok(reader)
    }

    pub(crate) fn watch(&self, waker: &Waker) {
        self.driver.replace(Some(waker.clone()));
    }

    fn wake_driver(&self) {
        let waker = self.driver.take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Writes if there is much to write; the driver does the rest.
    fn flush_much(&self) {
        let (length, sent) = {
            let state = self.state.borrow();
            (state.unsent.len(), state.sent)
        };
        let is_much = MAX_COLLECTED_BYTES < length - sent;
        match is_much.then(|| self.flush()) {
            Some(Ok(true)) => {}
            Some(Ok(false)) | None => self.wake_driver(),
            Some(Err(_)) => self.close(&CallError::Closed),
        }
    }

    /// Writes what the socket takes. Returns whether that is all.
    pub(crate) fn flush(&self) -> io::Result<bool> {
        let Some(stream) = self.stream.get() else {
            return Ok(false);
        };
        let mut state = self.state.borrow_mut();
        let State { unsent, sent, .. } = &mut *state;
        while let Some(rest) = unsent.get(*sent..).filter(|rest| !rest.is_empty()) {
            match stream.try_write(rest) {
                Ok(written) => *sent += written,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(false),
                Err(error) => return Err(error),
            }
        }
        unsent.clear();
        unsent.shrink_to(MAX_UNSENT_BYTES);
        *sent = 0;
        Ok(true)
    }

    /// The maximum length of the next frame, and the encoding of its payload.
    pub(crate) fn reads(&self) -> (usize, Encoding) {
        match &self.state.borrow().phase {
            Phase::Ready(agreement) => (self.hello.max_decision_bytes, agreement.encoding),
            Phase::Opening | Phase::Closed(_) => {
                (agent_protocol::MAX_HANDSHAKE_BYTES, Encoding::Json)
            }
        }
    }

    /// Takes a message of the agent.
    pub(crate) fn receive(&self, message: AgentMessage<'static>) -> Result<(), CallError> {
        self.state.borrow_mut().unanswered = 0;
        let is_opening = matches!(self.state.borrow().phase, Phase::Opening);
        match message {
            AgentMessage::Welcome(welcome) if is_opening => self.agree(&welcome),
            AgentMessage::Error(error) if error.id == RequestId::CONNECTION => Err(refused(&error)),
            AgentMessage::Decision(answer) if !is_opening => {
                self.answer((answer.id, Some(answer.seq)), Ok(answer.decision))
            }
            AgentMessage::Error(error) if !is_opening => {
                self.answer((error.id, None), Err(refused(&error)))
            }
            AgentMessage::Drain(drain) if !is_opening && drain.id == RequestId::CONNECTION => {
                if let Phase::Ready(agreement) = &mut self.state.borrow_mut().phase {
                    agreement.draining = true;
                }
                Ok(())
            }
            AgentMessage::Welcome(_)
            | AgentMessage::Decision(_)
            | AgentMessage::Drain(_)
            | AgentMessage::Error(_) => Err(bad("a message at a time when none is due")),
        }
    }

    /// Answers the call of request `id` alone, from the beginning of a decision of which the rest is
    /// wrong, for the cause `text`: a denial stands, anything else is a failure.
    pub(crate) fn answer_prefix(
        &self,
        (id, prefix): (RequestId, DecisionPrefix),
        text: &str,
    ) -> Result<(), CallError> {
        if prefix.denies {
            return self.answer((id, prefix.seq), Ok(Decision::Block(Block::default())));
        }
        self.answer((id, None), Err(bad(text)))
    }

    /// Notes that a denial has begun to arrive: it stands if the rest does not come.
    pub(crate) fn note_denial(&self, prefix: DecisionPrefix) {
        let mut state = self.state.borrow_mut();
        let id = prefix.id.filter(|_| prefix.denies);
        if let Some(id) = id
            && let Some(waiting) = state.waiting.get_mut(&id.get())
        {
            waiting.is_denied = prefix.seq == Some(waiting.seq);
        }
    }

    /// Passes an answer on. Answers to calls that were given up are skipped; those to events that were
    /// never sent, and second ones, are the end of the connection.
    fn answer(
        &self,
        (id, seq): (RequestId, Option<u32>),
        answer: Result<Decision, CallError>,
    ) -> Result<(), CallError> {
        let mut state = self.state.borrow_mut();
        let expected = state.waiting.get(&id.get()).map(|waiting| waiting.seq);
        if expected.is_some() && (seq.is_none() || seq == expected) {
            let waiting = state.waiting.remove(&id.get());
            drop(state);
            if let Some(Waiting { answer: caller, .. }) = waiting {
                caller.send(answer).unwrap_or_default();
            }
            return Ok(());
        }
        let was_sent = id != RequestId::CONNECTION && id.get() < state.next_id;
        if !was_sent || expected.is_some() || state.late == 0 {
            return Err(bad("an answer to an event that awaits none"));
        }
        state.late -= 1;
        Ok(())
    }

    fn agree(&self, welcome: &Welcome) -> Result<(), CallError> {
        let checked = welcome.check(&self.hello);
        checked.map_err(|error| bad(&error.to_string()))?;
        check_wants(welcome.wants, &self.endpoint)?;
        let mut state = self.state.borrow_mut();
        state.was_ready = true;
        state.phase = Phase::Ready(Agreement {
            encoding: welcome.encoding,
            wants: welcome.wants,
            draining: false,
        });
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }
}

/// Refuses an agent that asks for events which its configuration does not list.
fn check_wants(wants: Wants, endpoint: &AgentEndpoint) -> Result<(), CallError> {
    use agent_protocol::BodyMode;
    use proxy_model::AgentEventKind;
    let wanted = [
        (
            wants.request_body != BodyMode::None,
            AgentEventKind::RequestBody,
        ),
        (wants.response_headers, AgentEventKind::ResponseHeaders),
        (
            wants.response_body != BodyMode::None,
            AgentEventKind::ResponseBody,
        ),
    ];
    let unlisted = wanted
        .into_iter()
        .find(|(is_wanted, event)| *is_wanted && !endpoint.events.has(*event));
    match unlisted {
        Some((_, event)) => Err(bad(&format!(
            "the agent asks for `{event}`, which its `events` do not list"
        ))),
        None => Ok(()),
    }
}

fn hello(endpoint: &AgentEndpoint) -> Hello {
    let encodings = match endpoint.encoding {
        AgentEncoding::Json => vec![Encoding::Json],
        AgentEncoding::MessagePack => vec![Encoding::MessagePack, Encoding::Json],
    };
    let bytes = |bytes| usize::try_from(bytes).unwrap_or(usize::MAX);
    Hello {
        id: RequestId::CONNECTION,
        versions: vec![PROTOCOL_VERSION],
        encodings: encodings.iter().map(|one| one.name().to_owned()).collect(),
        proxy: concat!("proxyd/", env!("CARGO_PKG_VERSION")).to_owned(),
        agent: endpoint.name.as_ref().to_owned(),
        max_event_bytes: bytes(endpoint.max_event_bytes),
        max_decision_bytes: bytes(endpoint.max_response_bytes),
        features: Vec::new(),
    }
}

fn refused(error: &ErrorMessage<'_>) -> CallError {
    let text = format!("the agent reports: {}", error.message);
    match error.code {
        ErrorCode::Overloaded => CallError::Overloaded(text),
        ErrorCode::Protocol | ErrorCode::UnsupportedVersion | ErrorCode::Internal => {
            CallError::BadReply(text)
        }
    }
}

pub(crate) fn bad(text: &str) -> CallError {
    CallError::BadReply(text.to_owned())
}
