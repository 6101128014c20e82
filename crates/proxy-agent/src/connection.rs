//! A connection to an agent, shared by the requests of one worker.

pub(crate) mod driver;
mod outbox;

use crate::error::CallError;
use agent_protocol::{
    AgentMessage, BODY_PARTS, Block, BodyMode, Cancel, Decision, DecisionPrefix, Encoding,
    ErrorCode, ErrorMessage, Hello, PROTOCOL_VERSION, ProxyMessage, RequestId, Wants, Welcome,
};
use outbox::Outbox;
use proxy_model::AgentEncoding;
use proxy_plan::AgentEndpoint;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Notify, Semaphore, oneshot};

/// Number of unsent bytes above which further events wait.
const MAX_UNSENT_BYTES: usize = 256 << 10;
/// Number of unsent bytes above which new requests prefer another connection.
const BUSY_UNSENT_BYTES: usize = 64 << 10;
/// Consecutive timed-out calls, without a byte from the agent, after which the connection is
/// closed. Calls that ended earlier because the client disconnected do not count.
const MAX_EXPIRED: u32 = 32;
/// Size of a request body from which new requests prefer another connection until the decision.
const LARGE_BODY_BYTES: usize = 16 << 10;

/// Number of an event of a session: the request, and the index of the event within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventNumber {
    /// Identifier of the request, unique on its connection.
    pub id: RequestId,
    /// Index of the event in its session.
    pub seq: u32,
}

/// A connection. Its driver, a task, connects, reads and writes: events of requests served in one
/// round of the worker share one write.
#[derive(Debug)]
pub(crate) struct Connection {
    pub(crate) endpoint: Arc<AgentEndpoint>,
    /// Serves requests with a body. Requests without one may use every connection.
    pub(crate) takes_bodies: bool,
    hello: Hello,
    state: RefCell<ConnectionState>,
    /// `None` before the handshake and after the end.
    stream: RefCell<Option<OwnedWriteHalf>>,
    /// Wakes the driver, to write or to end.
    driver: RefCell<Option<Waker>>,
    /// Notified at the end of the handshake and of the connection.
    changed: Notify,
    /// Held by the next event to be sent; later events follow in the order of arrival.
    turn: Semaphore,
    /// Notified when bytes were written, or the connection has ended.
    drained: Notify,
}

#[derive(Debug)]
struct ConnectionState {
    phase: Phase,
    was_ready: bool,
    outbox: Outbox,
    next_id: u64,
    /// Calls without an answer, by id of the request.
    waiting: HashMap<u64, Waiting>,
    /// Number of open sessions.
    sessions: usize,
    /// Number of calls in `waiting` with a large body.
    large_bodies: usize,
    /// Number of answers that may still arrive for abandoned calls.
    late: u32,
    /// Timed-out calls since the agent last sent a byte.
    expired: u32,
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
    /// The agent accepts bodies in parts.
    pub(crate) has_body_parts: bool,
    /// The agent accepts no further requests on this connection.
    draining: bool,
}

/// A call without an answer.
#[derive(Debug)]
struct Waiting {
    seq: u32,
    /// A denial has begun to arrive, and is valid even if the rest does not arrive.
    is_denied: bool,
    is_large_body: bool,
    answer: oneshot::Sender<Result<Decision, CallError>>,
}

impl Connection {
    /// A connection to be opened by its driver.
    pub(crate) fn new(endpoint: Arc<AgentEndpoint>, takes_bodies: bool) -> Self {
        Self {
            takes_bodies,
            hello: hello(&endpoint),
            endpoint,
            state: RefCell::new(ConnectionState {
                phase: Phase::Opening,
                was_ready: false,
                outbox: Outbox::default(),
                next_id: 1,
                waiting: HashMap::new(),
                sessions: 0,
                large_bodies: 0,
                late: 0,
                expired: 0,
            }),
            stream: RefCell::default(),
            driver: RefCell::new(None),
            changed: Notify::new(),
            turn: Semaphore::new(1),
            drained: Notify::new(),
        }
    }

    /// Number of calls without an answer.
    pub(crate) fn load(&self) -> usize {
        self.state.borrow().waiting.len()
    }

    /// Returns true if a call may wait long: for large bodies that the agent has yet to read or to
    /// decide about.
    pub(crate) fn is_congested(&self) -> bool {
        let state = self.state.borrow();
        0 < state.large_bodies || BUSY_UNSENT_BYTES < state.outbox.unsent()
    }

    /// Returns true if the agent requests bodies of requests; `None` before the handshake.
    pub(crate) fn wants_bodies(&self) -> Option<bool> {
        match &self.state.borrow().phase {
            Phase::Ready(agreement) => Some(agreement.wants.request_body != BodyMode::None),
            Phase::Opening | Phase::Closed(_) => None,
        }
    }

    /// Returns true if the connection accepts further requests, now or after its handshake.
    pub(crate) fn takes_requests(&self) -> bool {
        match &self.state.borrow().phase {
            Phase::Opening => true,
            Phase::Ready(agreement) => !agreement.draining,
            Phase::Closed(_) => false,
        }
    }

    /// Returns true if the handshake is over and the connection is open.
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

    /// Begins the session of a new request, to be ended with [`Self::end_session`].
    pub(crate) fn begin_session(&self) -> Result<RequestId, CallError> {
        let mut state = self.state.borrow_mut();
        let id = RequestId::new(state.next_id).ok_or(CallError::Closed)?;
        state.next_id += 1;
        state.sessions += 1;
        Ok(id)
    }

    /// Ends the session of a request. On a draining connection, the end of the last session ends
    /// the connection.
    pub(crate) fn end_session(&self) {
        let mut state = self.state.borrow_mut();
        state.sessions = state.sessions.saturating_sub(1);
        let is_last = state.sessions == 0;
        drop(state);
        if is_last && !self.takes_requests() {
            self.wake_driver();
        }
    }

    /// Returns true if the agent accepts no further requests, and the current ones have ended.
    pub(crate) fn is_drained(&self) -> bool {
        let state = self.state.borrow();
        let is_draining = matches!(&state.phase, Phase::Ready(agreement) if agreement.draining);
        is_draining && state.sessions == 0 && state.outbox.unsent() == 0
    }

    /// Sends `event` in turn, and expects an answer to it.
    pub(crate) async fn call(
        &self,
        number: EventNumber,
        event: &ProxyMessage<'_>,
    ) -> Result<oneshot::Receiver<Result<Decision, CallError>>, CallError> {
        self.send_in_turn(event).await?;
        let (answer, receiver) = oneshot::channel();
        let is_large_body = LARGE_BODY_BYTES < body_bytes(event);
        let waiting = Waiting {
            seq: number.seq,
            is_denied: false,
            is_large_body,
            answer,
        };
        let mut state = self.state.borrow_mut();
        state.waiting.insert(number.id.get(), waiting);
        state.large_bodies += usize::from(is_large_body);
        Ok(receiver)
    }

    /// Sends an event in turn, when the agent has read enough of the earlier ones.
    pub(crate) async fn send_in_turn(&self, event: &ProxyMessage<'_>) -> Result<(), CallError> {
        // The semaphore is closed with the connection.
        let turn = self.turn.acquire().await.map_err(|_| self.end())?;
        while MAX_UNSENT_BYTES < self.state.borrow().outbox.unsent() {
            self.drained.notified().await;
        }
        let sent = self.send(event);
        drop(turn);
        sent
    }

    /// Sends `message` at once. Only the end of a request is sent out of turn: it is small and
    /// occurs once per request, so unsent data stays bounded.
    pub(crate) fn send(&self, message: &ProxyMessage<'_>) -> Result<(), CallError> {
        {
            let mut state = self.state.borrow_mut();
            let encoding = match &state.phase {
                Phase::Ready(agreement) => agreement.encoding,
                Phase::Closed(error) => return Err(error.clone()),
                Phase::Opening => return Err(CallError::Closed),
            };
            let limit = self.hello.max_event_bytes;
            let encoded = message.encode(encoding, limit, state.outbox.frames());
            encoded.map_err(|error| CallError::Overloaded(error.to_string()))?;
        }
        self.flush_much();
        Ok(())
    }

    /// Abandons the call of request `id`, if it is unanswered. `has_expired` is true after the
    /// agent's timeout. Returns true if a denial has begun to arrive.
    pub(crate) fn give_up(&self, id: RequestId, has_expired: bool) -> bool {
        let mut state = self.state.borrow_mut();
        let Some(Waiting { is_denied, .. }) = state.take(id) else {
            return false;
        };
        state.late = state.late.saturating_add(1);
        state.expired += u32::from(has_expired);
        let is_silent = MAX_EXPIRED <= state.expired;
        drop(state);
        if is_silent {
            self.close(&CallError::Unreachable(
                "the agent does not answer".to_owned(),
            ));
        }
        is_denied
    }

    /// Notifies the agent that request `id` has ended for it.
    pub(crate) fn cancel(&self, id: RequestId) {
        // A closed connection needs no notification.
        self.send(&ProxyMessage::Cancel(Cancel { id }))
            .unwrap_or_default();
    }

    /// Closes the connection. Every call without an answer fails with `error`.
    pub(crate) fn close(&self, error: &CallError) {
        let waiting = {
            let mut state = self.state.borrow_mut();
            if matches!(state.phase, Phase::Closed(_)) {
                return;
            }
            state.phase = Phase::Closed(error.clone());
            state.outbox.clear();
            state.large_bodies = 0;
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
            // The receiver is dropped if the call was cancelled.
            answer.send(result).unwrap_or_default();
        }
        self.changed.notify_waiters();
        self.turn.close();
        self.drained.notify_one();
        self.wake_driver();
    }

    /// The error that ended the connection.
    fn end(&self) -> CallError {
        match &self.state.borrow().phase {
            Phase::Closed(error) => error.clone(),
            Phase::Opening | Phase::Ready(_) => CallError::Closed,
        }
    }

    pub(crate) fn is_closed(&self) -> bool {
        matches!(self.state.borrow().phase, Phase::Closed(_))
    }

    /// Ready when the socket takes further bytes, or the connection has ended.
    pub(crate) fn poll_write_ready(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.stream.borrow();
        let stream = stream.as_ref().map(OwnedWriteHalf::as_ref);
        stream.map_or(Poll::Ready(Ok(())), |stream| stream.poll_write_ready(cx))
    }

    /// Closes the socket of a connection that has ended.
    pub(crate) fn release(&self) {
        self.stream.take();
    }

    /// Begins the handshake on `stream`, which the driver reads.
    pub(crate) fn greet(&self, stream: UnixStream) -> Result<OwnedReadHalf, CallError> {
        let (reader, writer) = stream.into_split();
        let hello = ProxyMessage::Hello(self.hello.clone());
        let mut state = self.state.borrow_mut();
        let limit = agent_protocol::MAX_HANDSHAKE_BYTES;
        let written = hello.encode(Encoding::Json, limit, state.outbox.frames());
        self.stream.replace(Some(writer));
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

    /// Writes if there is much to write; otherwise the driver writes later.
    fn flush_much(&self) {
        let is_large = self.state.borrow().outbox.is_large();
        match is_large.then(|| self.flush()) {
            Some(Ok(true)) => {}
            Some(Ok(false)) | None => self.wake_driver(),
            Some(Err(_)) => self.close(&CallError::Closed),
        }
    }

    /// Writes as much as the socket accepts. Returns true if nothing remains.
    pub(crate) fn flush(&self) -> io::Result<bool> {
        let stream = self.stream.borrow();
        let Some(stream) = stream.as_ref() else {
            return Ok(false);
        };
        let written = self.state.borrow_mut().outbox.flush(stream);
        if self.turn.available_permits() == 0 {
            self.drained.notify_one();
        }
        written
    }

    /// The maximum length of the next frame, and the encoding of its payload.
    pub(crate) fn reads(&self) -> (usize, Encoding) {
        match &self.state.borrow().phase {
            Phase::Ready(agreement) => {
                // The setting limits the answer; a frame's length includes its type, too.
                let limit = self.hello.max_decision_bytes.saturating_add(1);
                (limit, agreement.encoding)
            }
            Phase::Opening | Phase::Closed(_) => {
                (agent_protocol::MAX_HANDSHAKE_BYTES, Encoding::Json)
            }
        }
    }

    /// Processes a message of the agent.
    pub(crate) fn receive(&self, message: AgentMessage<'static>) -> Result<(), CallError> {
        self.state.borrow_mut().expired = 0;
        let is_opening = matches!(self.state.borrow().phase, Phase::Opening);
        match message {
            AgentMessage::Welcome(welcome) if is_opening => self.agree(&welcome),
            AgentMessage::Error(error) if error.id == RequestId::CONNECTION => Err(refused(&error)),
            AgentMessage::Decision(answer) if !is_opening => {
                self.answer(answer.id, Some(answer.seq), Ok(answer.decision))
            }
            AgentMessage::Error(error) if !is_opening => {
                self.answer(error.id, None, Err(refused(&error)))
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

    /// Answers the call of request `id` with the beginning of a decision that has a faulty
    /// remainder: a denial is valid, anything else fails with `error`.
    pub(crate) fn answer_prefix(
        &self,
        id: RequestId,
        prefix: DecisionPrefix,
        error: CallError,
    ) -> Result<(), CallError> {
        if prefix.denies {
            return self.answer(id, prefix.seq, Ok(Decision::Block(Block::default())));
        }
        self.answer(id, None, Err(error))
    }

    /// Records that a denial has begun to arrive: it is valid even if the remainder does not
    /// arrive.
    pub(crate) fn note_denial(&self, prefix: DecisionPrefix) {
        let mut state = self.state.borrow_mut();
        let id = prefix.id.filter(|_| prefix.denies);
        if let Some(id) = id
            && let Some(waiting) = state.waiting.get_mut(&id.get())
        {
            waiting.is_denied = prefix.seq == Some(waiting.seq);
        }
    }

    /// Forwards an answer to its call. Answers to abandoned calls are skipped; answers without an
    /// event, and duplicates, close the connection.
    fn answer(
        &self,
        id: RequestId,
        seq: Option<u32>,
        answer: Result<Decision, CallError>,
    ) -> Result<(), CallError> {
        let mut state = self.state.borrow_mut();
        let expected = state.waiting.get(&id.get()).map(|waiting| waiting.seq);
        if expected.is_some() && (seq.is_none() || seq == expected) {
            let waiting = state.take(id);
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
            has_body_parts: welcome.features.iter().any(|one| one == BODY_PARTS),
            draining: false,
        });
        drop(state);
        self.changed.notify_waiters();
        Ok(())
    }
}

impl ConnectionState {
    fn take(&mut self, id: RequestId) -> Option<Waiting> {
        let waiting = self.waiting.remove(&id.get())?;
        let is_large_body = usize::from(waiting.is_large_body);
        self.large_bodies = self.large_bodies.saturating_sub(is_large_body);
        Some(waiting)
    }
}

/// Length of the body in `event`; 0 without one.
fn body_bytes(event: &ProxyMessage<'_>) -> usize {
    match event {
        ProxyMessage::RequestBody(chunk) | ProxyMessage::ResponseBody(chunk) => {
            chunk.data.as_bytes().len()
        }
        ProxyMessage::Hello(_)
        | ProxyMessage::RequestHeaders(_)
        | ProxyMessage::ResponseHeaders(_)
        | ProxyMessage::Completion(_)
        | ProxyMessage::Cancel(_)
        | ProxyMessage::Error(_) => 0,
    }
}

/// Refuses an agent that requests events which its configuration does not list.
fn check_wants(wants: Wants, endpoint: &AgentEndpoint) -> Result<(), CallError> {
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
        features: vec![BODY_PARTS.to_owned()],
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
