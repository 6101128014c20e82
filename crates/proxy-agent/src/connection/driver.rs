//! The task of a connection: it connects, reads and writes.

use crate::connection::{Connection, bad};
use crate::error::CallError;
use crate::link::connect_socket;
use agent_protocol::{
    AgentMessage, DecisionPrefix, Encoding, Frame, FrameError, FrameType, LENGTH_BYTES, read_frame,
};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::OwnedReadHalf;

/// Maximum bytes of one read.
const READ_BYTES: usize = 16 << 10;
/// Number of reads after which other tasks have a turn.
const MAX_READS: u32 = 16;
/// The part of an incomplete frame that is scanned for a denial, in bytes.
const MAX_PREFIX_BYTES: usize = 16 << 10;
/// Maximum size of an oversized frame that is discarded; a larger one ends the connection.
const MAX_DISCARDED_BYTES: usize = 16 << 20;

/// Bytes from the agent that are not a complete frame yet. The buffer is reused, so that a read
/// neither allocates nor clears memory.
#[derive(Debug, Default)]
struct Input {
    space: Vec<u8>,
    filled: usize,
    /// Bytes of an oversized frame that have not arrived yet.
    to_discard: usize,
}

impl Input {
    fn bytes(&self) -> &[u8] {
        self.space.get(..self.filled).unwrap_or_default()
    }

    /// Reads once. Ready with the number of bytes, 0 at the end.
    fn poll_read(
        &mut self,
        reader: &mut OwnedReadHalf,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Self { space, filled, .. } = self;
        if space.len() < *filled + READ_BYTES {
            space.resize(*filled + READ_BYTES, 0);
        }
        let mut free = ReadBuf::new(space.get_mut(*filled..).unwrap_or_default());
        ready!(Pin::new(reader).poll_read(cx, &mut free))?;
        let read = free.filled().len();
        *filled += read;
        Poll::Ready(Ok(read))
    }

    fn discard(&mut self) {
        let count = self.to_discard.min(self.filled);
        self.to_discard -= count;
        self.consume(count);
    }

    /// Removes the first `count` bytes.
    fn consume(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let Self { space, filled, .. } = self;
        space.copy_within(count..*filled, 0);
        *filled -= count;
        if *filled == 0 && READ_BYTES < space.len() {
            *space = Vec::new();
        }
    }
}

/// Serves `connection` until it ends.
pub(crate) async fn run(connection: Rc<Connection>) {
    let end = serve(&connection).await;
    connection.close(&end);
    connection.release();
}

async fn serve(connection: &Connection) -> CallError {
    let stream = match connect_socket(&connection.endpoint).await {
        Ok(stream) => stream,
        Err(error) => return CallError::Unreachable(error.to_string()),
    };
    let mut reader = match connection.greet(stream) {
        Ok(reader) => reader,
        Err(error) => return error,
    };
    let mut input = Input::default();
    poll_fn(|cx| poll(connection, cx, &mut reader, &mut input)).await
}

/// Ready when the connection has ended.
fn poll(
    connection: &Connection,
    cx: &mut Context<'_>,
    reader: &mut OwnedReadHalf,
    input: &mut Input,
) -> Poll<CallError> {
    connection.watch(cx.waker());
    if connection.is_closed() {
        return Poll::Ready(CallError::Closed);
    }
    if poll_write(connection, cx).is_err() {
        return Poll::Ready(CallError::Closed);
    }
    for _ in 0..MAX_READS {
        if connection.is_drained() {
            return Poll::Ready(CallError::Closed);
        }
        let polled = ready!(input.poll_read(reader, cx));
        // Frames that arrived before the end are still valid.
        if let Err(error) = take_frames(connection, input) {
            return Poll::Ready(error);
        }
        match polled {
            Ok(0) | Err(_) => return Poll::Ready(CallError::Closed),
            Ok(_) => {}
        }
    }
    cx.waker().wake_by_ref();
    Poll::Pending
}

fn poll_write(connection: &Connection, cx: &mut Context<'_>) -> io::Result<()> {
    while !connection.flush()? {
        match connection.poll_write_ready(cx) {
            Poll::Ready(ready) => ready?,
            Poll::Pending => break,
        }
    }
    Ok(())
}

/// Processes every complete frame at the beginning of `input`, and removes it. The beginning of an
/// oversized decision answers its call; the rest is discarded.
fn take_frames(connection: &Connection, input: &mut Input) -> Result<(), CallError> {
    input.discard();
    let mut taken = 0;
    loop {
        let (limit, encoding) = connection.reads();
        let rest = input.bytes().get(taken..).unwrap_or_default();
        match read_frame(rest, limit) {
            Ok(Some((frame, length))) => {
                taken += length;
                take_frame(connection, frame, encoding)?;
            }
            Ok(None) => {
                note_denial(connection, rest, encoding);
                break;
            }
            Err(error @ FrameError::TooLong { length, .. }) => {
                if !take_long(connection, rest, encoding, error)? {
                    break;
                }
                let length = LENGTH_BYTES + length;
                taken += length.min(rest.len());
                input.to_discard = length.saturating_sub(rest.len());
            }
            Err(error) => return Err(bad(&error.to_string())),
        }
    }
    input.consume(taken);
    Ok(())
}

fn take_frame(
    connection: &Connection,
    frame: Frame<'_>,
    encoding: Encoding,
) -> Result<(), CallError> {
    let error = match AgentMessage::decode(frame, encoding) {
        Ok(message) => return connection.receive(message),
        Err(error) => error,
    };
    let mut prefix = DecisionPrefix::default();
    if frame.frame_type == FrameType::Decision {
        prefix = DecisionPrefix::read(frame.payload, encoding);
    }
    match error.request.or(prefix.id) {
        Some(id) if connection.is_ready() => {
            connection.answer_prefix(id, prefix, bad(&error.detail))
        }
        Some(_) | None => Err(bad(&error.detail)),
    }
}

/// Answers the call of an oversized decision with its beginning. Returns false if that has not
/// arrived yet.
fn take_long(
    connection: &Connection,
    rest: &[u8],
    encoding: Encoding,
    error: FrameError,
) -> Result<bool, CallError> {
    let text = error.to_string();
    let is_decision = rest
        .get(LENGTH_BYTES)
        .is_none_or(|code| *code == FrameType::Decision.code());
    let FrameError::TooLong { length, limit } = error else {
        return Err(bad(&text));
    };
    if !is_decision || !connection.is_ready() || MAX_DISCARDED_BYTES < length {
        return Err(bad(&text));
    }
    if rest.len() < MAX_PREFIX_BYTES.min(LENGTH_BYTES + length) {
        note_denial(connection, rest, encoding);
        return Ok(false);
    }
    let prefix = decision_prefix(rest, encoding);
    // Both lengths count the type of the frame.
    let payload = |length: usize| u64::try_from(length.saturating_sub(1)).unwrap_or(u64::MAX);
    let too_large = CallError::TooLarge {
        at_least_bytes: payload(length),
        max_bytes: payload(limit),
    };
    let id = prefix.id.ok_or_else(|| too_large.clone())?;
    connection.answer_prefix(id, prefix, too_large)?;
    Ok(true)
}

/// Records a denial at the beginning of an incomplete frame.
fn note_denial(connection: &Connection, rest: &[u8], encoding: Encoding) {
    let is_decision = rest.get(LENGTH_BYTES) == Some(&FrameType::Decision.code());
    if is_decision && connection.is_ready() {
        connection.note_denial(decision_prefix(rest, encoding));
    }
}

fn decision_prefix(frame: &[u8], encoding: Encoding) -> DecisionPrefix {
    let payload = frame.get(LENGTH_BYTES + 1..).unwrap_or_default();
    let payload = payload.get(..MAX_PREFIX_BYTES).unwrap_or(payload);
    DecisionPrefix::read(payload, encoding)
}
