//! The task of a connection: it connects, reads and writes.

use crate::connection::{Connection, bad};
use crate::error::CallError;
use agent_protocol::{AgentMessage, read_frame};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::UnixStream;
use tokio::net::unix::OwnedReadHalf;

/// Bytes read at once.
const READ_BYTES: usize = 16 << 10;
/// Reads after which other tasks have their turn.
const MAX_READS: u32 = 16;

/// What the agent sent, up to a frame that is not whole. The space is kept, so that a read neither allocates
/// nor clears any.
#[derive(Debug, Default)]
struct Input {
    space: Vec<u8>,
    filled: usize,
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
        let Self { space, filled } = self;
        if space.len() < *filled + READ_BYTES {
            space.resize(*filled + READ_BYTES, 0);
        }
        let mut free = ReadBuf::new(space.get_mut(*filled..).unwrap_or_default());
        ready!(Pin::new(reader).poll_read(cx, &mut free))?;
        let read = free.filled().len();
        *filled += read;
        Poll::Ready(Ok(read))
    }

    /// Removes the first `count` bytes.
    fn consume(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        let Self { space, filled } = self;
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
}

async fn serve(connection: &Connection) -> CallError {
    let stream = match UnixStream::connect(&connection.endpoint.socket).await {
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

/// Ready with the end of the connection.
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
    let Some(stream) = connection.stream() else {
        return Poll::Ready(CallError::Closed);
    };
    if poll_write(connection, stream, cx).is_err() {
        return Poll::Ready(CallError::Closed);
    }
    for _ in 0..MAX_READS {
        let polled = ready!(input.poll_read(reader, cx));
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

/// Takes every whole frame from the beginning of `input`, which then has less than one.
fn take_frames(connection: &Connection, input: &mut Input) -> Result<(), CallError> {
    let mut taken = 0;
    loop {
        let (limit, encoding) = connection.reads();
        let rest = input.bytes().get(taken..).unwrap_or_default();
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
    input.consume(taken);
    Ok(())
}
