//! The task of a connection: it connects, reads, and writes what could not be written at once.

use crate::connection::{Connection, bad};
use crate::error::CallError;
use agent_protocol::{AgentMessage, read_frame};
use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::net::UnixStream;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Reads after which other tasks have their turn.
const MAX_READS: u32 = 16;

/// Serves `connection` until it ends.
pub(crate) async fn run(connection: Rc<Connection>) {
    let end = serve(&connection).await;
    connection.close(&end);
}

async fn serve(connection: &Connection) -> CallError {
    let stream = match UnixStream::connect(&connection.endpoint.socket).await {
        Ok(stream) => stream,
        Err(error) => return CallError::Unreachable(error.to_string()),
    };
    if let Err(error) = connection.greet(stream) {
        return error;
    }
    let mut input = Vec::new();
    poll_fn(|cx| poll(connection, cx, &mut input)).await
}

/// Ready with the end of the connection.
fn poll(connection: &Connection, cx: &mut Context<'_>, input: &mut Vec<u8>) -> Poll<CallError> {
    connection.watch(cx.waker());
    if connection.is_closed() {
        return Poll::Ready(CallError::Closed);
    }
    let Some(stream) = connection.stream() else {
        return Poll::Ready(CallError::Closed);
    };
    if poll_write(connection, stream, cx).is_err() {
        return Poll::Ready(CallError::Closed);
    }
    for _ in 0..MAX_READS {
        let polled = ready!(poll_read(stream, cx, input));
        // What came before the end counts.
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

fn poll_write(
    connection: &Connection,
    stream: &UnixStream,
    cx: &mut Context<'_>,
) -> io::Result<()> {
    while !connection.flush()? {
        match stream.poll_write_ready(cx) {
            Poll::Ready(ready) => ready?,
            Poll::Pending => break,
        }
    }
    Ok(())
}

fn poll_read(
    stream: &UnixStream,
    cx: &mut Context<'_>,
    input: &mut Vec<u8>,
) -> Poll<io::Result<usize>> {
    loop {
        ready!(stream.poll_read_ready(cx))?;
        let length = input.len();
        input.resize(length + READ_BYTES, 0);
        let space = input.get_mut(length..).unwrap_or_default();
        let read = stream.try_read(space);
        input.truncate(length + read.as_ref().copied().unwrap_or_default());
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            read => return Poll::Ready(read),
        }
    }
}

/// Takes every whole frame from the beginning of `input`, which then has less than one.
fn take_frames(connection: &Connection, input: &mut Vec<u8>) -> Result<(), CallError> {
    let mut taken = 0;
    loop {
        let (limit, encoding) = connection.reads();
        let rest = input.get(taken..).unwrap_or_default();
        let found = read_frame(rest, limit).map_err(|error| bad(&error.to_string()))?;
        let Some((frame, length)) = found else {
            break;
        };
        taken += length;
        match AgentMessage::decode(frame, encoding) {
            Ok(message) => connection.receive(message)?,
            Err(error) => match error.request {
                Some(id) if connection.is_ready() => connection.fail(id, &error.detail)?,
                Some(_) | None => return Err(bad(&error.detail)),
            },
        }
    }
    input.drain(..taken);
    if input.is_empty() {
        *input = Vec::new();
    }
    Ok(())
}
