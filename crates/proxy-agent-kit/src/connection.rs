//! One connection of the proxy.

use crate::agent::Agent;
use crate::requests::Requests;
use agent_protocol::{
    AgentMessage, BODY_PARTS, Block, BodyMode, Decision, DecisionMessage, DecodeError, Drain,
    EncodeError, Encoding, ErrorCode, ErrorMessage, Hello, MAX_HANDSHAKE_BYTES, PROTOCOL_VERSION,
    ProxyMessage, RequestId, Wants, Welcome, read_frame,
};
use std::io;
use std::sync::Arc;
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::sync::watch;

/// Error of a connection that ended early.
#[derive(Debug, Error)]
enum ConnectionError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Decode(#[from] DecodeError),
    #[error(transparent)]
    Encode(#[from] EncodeError),
    #[error("{0}")]
    Protocol(&'static str),
    #[error("no common version")]
    Version,
}

/// Bytes read and not yet decoded, and the result of the handshake.
struct Wire {
    stream: UnixStream,
    input: Vec<u8>,
    /// Longest frame of the proxy.
    max_input: usize,
    /// Longest frame that the proxy accepts.
    max_output: usize,
    encoding: Encoding,
}

/// Serves a connection to its end. Reports the cause of the close to the proxy.
pub(crate) async fn serve<A: Agent>(
    agent: Arc<A>,
    stream: UnixStream,
    drained: watch::Receiver<bool>,
) {
    let mut wire = Wire {
        stream,
        input: Vec::new(),
        max_input: MAX_HANDSHAKE_BYTES,
        max_output: MAX_HANDSHAKE_BYTES,
        encoding: Encoding::Json,
    };
    let Err(error) = converse(agent, &mut wire, drained).await else {
        return;
    };
    let code = match error {
        ConnectionError::Io(_) => return,
        ConnectionError::Version => ErrorCode::UnsupportedVersion,
        ConnectionError::Encode(_) => ErrorCode::Internal,
        ConnectionError::Decode(_) | ConnectionError::Protocol(_) => ErrorCode::Protocol,
    };
    let message = AgentMessage::Error(ErrorMessage {
        id: RequestId::CONNECTION,
        code,
        message: error.to_string().into(),
    });
    // The connection ends either way.
    wire.send(&message).await.unwrap_or_default();
}

async fn converse<A: Agent>(
    agent: Arc<A>,
    wire: &mut Wire,
    mut drained: watch::Receiver<bool>,
) -> Result<(), ConnectionError> {
    let Some(ProxyMessage::Hello(hello)) = wire.next().await? else {
        return Err(ConnectionError::Protocol("the first frame is not a hello"));
    };
    let wants = with_completion(agent.wants());
    wire.agree(&hello, agent.name(), wants).await?;
    let mut requests = Requests::new(agent, wants);
    let mut is_draining = false;
    loop {
        tokio::select! {
            message = wire.next() => match message? {
                Some(message) => {
                    if let Some(refusal) = requests.take(message).map_err(ConnectionError::Protocol)? {
                        wire.send(&refusal).await?;
                    }
                }
                None => return Ok(()),
            },
            answer = requests.answer() => if let Some(answer) = answer {
                wire.send_answer(answer).await?;
            },
            () = drain_begins(&mut drained), if !is_draining => {
                // The proxy closes the connection when its requests are decided.
                is_draining = true;
                let id = RequestId::CONNECTION;
                wire.send(&AgentMessage::Drain(Drain { id })).await?;
            }
        }
    }
}

async fn drain_begins(drained: &mut watch::Receiver<bool>) {
    // The sender lives until the drain.
    drop(drained.wait_for(|drained| *drained).await);
}

/// Without completions the kit could not detect the end of a request with later events.
fn with_completion(wants: Wants) -> Wants {
    let bodies = [wants.request_body, wants.response_body];
    let is_later = wants.response_headers || bodies.iter().any(|mode| *mode != BodyMode::None);
    Wants {
        completion: wants.completion || is_later,
        ..wants
    }
}

impl Wire {
    async fn agree(
        &mut self,
        hello: &Hello,
        name: &str,
        wants: Wants,
    ) -> Result<(), ConnectionError> {
        if !hello.versions.contains(&PROTOCOL_VERSION) {
            return Err(ConnectionError::Version);
        }
        let known = [Encoding::MessagePack, Encoding::Json];
        let of_name = |name: &String| known.into_iter().find(|encoding| encoding.name() == name);
        let offered = hello.features.iter();
        let features = offered.filter(|name| *name == BODY_PARTS).cloned();
        let preferred = hello.encodings.iter().find_map(of_name);
        let encoding = preferred.ok_or(ConnectionError::Protocol("no common encoding"))?;
        let welcome = AgentMessage::Welcome(Welcome {
            id: RequestId::CONNECTION,
            version: PROTOCOL_VERSION,
            encoding,
            agent: name.to_owned(),
            wants,
            features: features.collect(),
        });
        self.send(&welcome).await?;
        self.encoding = encoding;
        self.max_input = hello.max_event_bytes;
        self.max_output = hello.max_decision_bytes;
        Ok(())
    }

    /// The next message; `None` after the proxy has closed. Cancel safe: bytes already read are
    /// kept.
    async fn next(&mut self) -> Result<Option<ProxyMessage<'static>>, ConnectionError> {
        loop {
            let found = read_frame(&self.input, self.max_input).map_err(DecodeError::from)?;
            if let Some((frame, length)) = found {
                let message = ProxyMessage::decode(frame, self.encoding)?;
                self.input.drain(..length);
                return Ok(Some(message));
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// A decision that is longer than the proxy accepts becomes a failure of its request; a denial
    /// is kept, without its body and its fields.
    async fn send_answer(&mut self, answer: AgentMessage<'static>) -> Result<(), ConnectionError> {
        let sent = self.send(&answer).await;
        let Err(ConnectionError::Encode(error)) = sent else {
            return sent;
        };
        let id = match answer {
            AgentMessage::Decision(DecisionMessage { id, seq, decision }) => {
                if let Some(decision) = bare_denial(&decision) {
                    let answer = DecisionMessage { id, seq, decision };
                    return self.send(&AgentMessage::Decision(answer)).await;
                }
                id
            }
            AgentMessage::Error(error) => error.id,
            AgentMessage::Welcome(_) | AgentMessage::Drain(_) => RequestId::CONNECTION,
        };
        let failure = AgentMessage::Error(ErrorMessage {
            id,
            code: ErrorCode::Internal,
            message: error.to_string().into(),
        });
        self.send(&failure).await
    }

    async fn send(&mut self, message: &AgentMessage<'_>) -> Result<(), ConnectionError> {
        let mut output = Vec::new();
        message.encode(self.encoding, self.max_output, &mut output)?;
        Ok(self.stream.write_all(&output).await?)
    }
}

/// The denial reduced to its status; `None` if `decision` allows.
fn bare_denial(decision: &Decision) -> Option<Decision> {
    let status = match decision {
        Decision::Allow(_) => return None,
        Decision::Block(block) => block.status,
        Decision::Challenge(_) => Some(401),
        Decision::Redirect(_) => None,
    };
    Some(Decision::Block(Block {
        status,
        ..Block::default()
    }))
}
