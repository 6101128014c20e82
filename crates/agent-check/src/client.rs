//! The proxy's end of a connection to the agent.

use crate::settings::Settings;
use agent_protocol::{
    AgentMessage, Decision, DecisionMessage, Encoding, EventKind, Hello, MAX_HANDSHAKE_BYTES,
    PROTOCOL_VERSION, ProxyMessage, RequestId, Welcome, read_frame,
};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Longest frame that a check sends.
pub(crate) const MAX_EVENT_BYTES: usize = 2 << 20;
/// Longest frame that it accepts: the default of `max-agent-response-bytes`.
pub(crate) const MAX_DECISION_BYTES: usize = 10_240;
/// Time without a byte that proves silence.
const QUIET_TIME: Duration = Duration::from_millis(150);
/// Time for the agent to read the bytes sent.
const PAUSE: Duration = Duration::from_millis(20);
const READ_BYTES: usize = 4096;

/// A message of the agent, or the end of its connection.
#[derive(Debug)]
pub(crate) enum Incoming {
    Message(AgentMessage<'static>),
    Closed,
    /// No byte within the time.
    Silence,
}

/// The event that a decision has to answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ExpectedDecision {
    pub(crate) id: RequestId,
    pub(crate) seq: u32,
    pub(crate) event: EventKind,
    pub(crate) is_chunk: bool,
}

/// One connection.
pub(crate) struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    limit: usize,
    timeout: Duration,
    encoding: Encoding,
    next_id: u64,
    pub(crate) has_drained: bool,
}

impl Client {
    /// A connection without a handshake.
    pub(crate) fn connect(settings: &Settings) -> Result<Self, String> {
        let stream = UnixStream::connect(&settings.socket)
            .map_err(|error| format!("cannot connect: {error}"))?;
        stream
            .set_write_timeout(Some(settings.timeout))
            .map_err(|error| error.to_string())?;
        Ok(Self {
            stream,
            input: Vec::new(),
            limit: MAX_HANDSHAKE_BYTES,
            timeout: settings.timeout,
            encoding: Encoding::Json,
            next_id: 1,
            has_drained: false,
        })
    }

    /// A connection after its handshake.
    pub(crate) fn greet(
        settings: &Settings,
        encodings: &[Encoding],
    ) -> Result<(Self, Welcome), String> {
        Self::greet_with(settings, &hello(encodings))
    }

    /// A connection after a handshake that began with `hello`.
    pub(crate) fn greet_with(
        settings: &Settings,
        hello: &Hello,
    ) -> Result<(Self, Welcome), String> {
        let mut client = Self::connect(settings)?;
        client.send(&ProxyMessage::Hello(hello.clone()))?;
        let welcome = client.welcome()?;
        welcome.check(hello).map_err(|error| error.to_string())?;
        client.agree(welcome.encoding);
        Ok((client, welcome))
    }

    /// The handshake's answer.
    pub(crate) fn welcome(&mut self) -> Result<Welcome, String> {
        match self.receive(self.timeout)? {
            Incoming::Message(AgentMessage::Welcome(welcome)) => Ok(welcome),
            Incoming::Message(message) => Err(format!("{} instead of a welcome", kind(&message))),
            Incoming::Closed => Err("the connection was closed instead of a welcome".to_owned()),
            Incoming::Silence => Err(format!("no welcome within {:?}", self.timeout)),
        }
    }

    pub(crate) fn agree(&mut self, encoding: Encoding) {
        self.encoding = encoding;
        self.limit = MAX_DECISION_BYTES;
    }

    /// An id that was not used before.
    pub(crate) fn next_id(&mut self) -> RequestId {
        let id = RequestId::new(self.next_id).unwrap_or(RequestId::MAX);
        self.next_id += 1;
        id
    }

    /// The frame of a message.
    pub(crate) fn frame(&self, message: &ProxyMessage<'_>) -> Result<Vec<u8>, String> {
        let mut bytes = Vec::new();
        message
            .encode(self.encoding, MAX_EVENT_BYTES, &mut bytes)
            .map_err(|error| error.to_string())?;
        Ok(bytes)
    }

    pub(crate) fn send(&mut self, message: &ProxyMessage<'_>) -> Result<(), String> {
        let bytes = self.frame(message)?;
        self.send_raw(&bytes)
    }

    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> Result<(), String> {
        let sent = self.stream.write_all(bytes);
        sent.map_err(|error| format!("does not take what is sent: {error}"))
    }

    /// The decision for an event.
    pub(crate) fn decision(&mut self, awaited: ExpectedDecision) -> Result<Decision, String> {
        let message = self.any_decision()?;
        let DecisionMessage { id, seq, decision } = message;
        if (id, seq) != (awaited.id, awaited.seq) {
            let ExpectedDecision {
                id: want, seq: of, ..
            } = awaited;
            return Err(format!(
                "the decision is for id {id} and seq {seq}, not {want} and {of}"
            ));
        }
        decision
            .check(awaited.event, awaited.is_chunk)
            .map_err(str::to_owned)?;
        Ok(decision)
    }

    /// The next decision with any content.
    pub(crate) fn any_decision(&mut self) -> Result<DecisionMessage, String> {
        match self.receive(self.timeout)? {
            Incoming::Message(AgentMessage::Decision(decision)) => Ok(decision),
            Incoming::Message(AgentMessage::Error(error)) => {
                Err(format!("error instead of a decision: {}", error.message))
            }
            Incoming::Message(message) => Err(format!("{} came for a decision", kind(&message))),
            Incoming::Closed => Err("closed instead of a decision".to_owned()),
            Incoming::Silence => Err(format!("no decision within {:?}", self.timeout)),
        }
    }

    /// No byte arrives, and the connection stays open.
    pub(crate) fn expect_quiet(&mut self) -> Result<(), String> {
        match self.receive(QUIET_TIME)? {
            Incoming::Silence => Ok(()),
            Incoming::Closed => Err("the connection was closed".to_owned()),
            Incoming::Message(message) => Err(format!("{} came unasked", kind(&message))),
        }
    }

    /// Waits until the agent has read the bytes sent.
    pub(crate) fn pause(&mut self) -> Result<(), String> {
        match self.receive(PAUSE)? {
            Incoming::Silence => Ok(()),
            Incoming::Closed => Err("closed before the frame was whole".to_owned()),
            Incoming::Message(message) => Err(format!("{} came too early", kind(&message))),
        }
    }

    /// The connection ends, after an error at most.
    pub(crate) fn expect_end(&mut self) -> Result<(), String> {
        match self.receive(self.timeout)? {
            Incoming::Closed | Incoming::Message(AgentMessage::Error(_)) => Ok(()),
            Incoming::Message(message) => Err(format!("{} came for an end", kind(&message))),
            Incoming::Silence => Err("the connection stays open".to_owned()),
        }
    }

    /// The next message. A connection that the agent resets counts as closed.
    pub(crate) fn receive(&mut self, wait: Duration) -> Result<Incoming, String> {
        let limit = Some(wait.max(Duration::from_millis(1)));
        self.stream
            .set_read_timeout(limit)
            .map_err(|error| error.to_string())?;
        loop {
            if let Some(message) = self.decode()? {
                if !matches!(message, AgentMessage::Drain(_)) {
                    return Ok(Incoming::Message(message));
                }
                self.has_drained = true;
            }
            let mut piece = [0; READ_BYTES];
            match self.stream.read(&mut piece) {
                Ok(0) if self.input.is_empty() => return Ok(Incoming::Closed),
                Ok(0) => return Err("closed in the middle of a frame".to_owned()),
                Ok(length) => self.input.extend(piece.iter().take(length)),
                Err(error) if is_timeout(&error) && self.input.is_empty() => {
                    return Ok(Incoming::Silence);
                }
                Err(error) if is_timeout(&error) => {
                    return Err(format!("only a part of a frame within {wait:?}"));
                }
                Err(error) if error.kind() == ErrorKind::ConnectionReset => {
                    return Ok(Incoming::Closed);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn decode(&mut self) -> Result<Option<AgentMessage<'static>>, String> {
        let found = read_frame(&self.input, self.limit).map_err(|error| error.to_string())?;
        let Some((frame, length)) = found else {
            return Ok(None);
        };
        let message =
            AgentMessage::decode(frame, self.encoding).map_err(|error| error.to_string())?;
        self.input.drain(..length);
        Ok(Some(message))
    }
}

fn is_timeout(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// The offer with these encodings.
pub(crate) fn hello(encodings: &[Encoding]) -> Hello {
    let names = encodings.iter().map(|encoding| encoding.name().to_owned());
    Hello {
        id: RequestId::CONNECTION,
        versions: vec![PROTOCOL_VERSION],
        encodings: names.collect(),
        proxy: concat!("proxyd-agent-check/", env!("CARGO_PKG_VERSION")).to_owned(),
        agent: "check".to_owned(),
        max_event_bytes: MAX_EVENT_BYTES,
        max_decision_bytes: MAX_DECISION_BYTES,
        features: Vec::new(),
    }
}

fn kind(message: &AgentMessage<'_>) -> String {
    match message {
        AgentMessage::Welcome(_) => "a welcome".to_owned(),
        AgentMessage::Decision(_) => "a decision".to_owned(),
        AgentMessage::Drain(_) => "a drain".to_owned(),
        AgentMessage::Error(error) => format!("an error ({})", error.message),
    }
}
