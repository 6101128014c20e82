//! A response body that threads read from a file, one piece ahead of the client at most.

use crate::failure::timeout_problem;
use bytes::Bytes;
use http_body::Frame;
use proxy_clock::{Timer, Timers};
use proxy_errors::{Detail, Problem, Reason};
use proxy_files::{Content, Fault, Served};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::{JoinHandle, spawn_blocking};

/// The rest of a file.
#[derive(Debug)]
pub(crate) struct FileBody {
    state: State,
    /// Bytes that the client has not got yet.
    left: u64,
    waiting: Waiting,
}

#[derive(Debug)]
enum State {
    /// A piece that came with the file, and what follows it.
    Begun(Bytes, Content),
    Held(Content),
    Reading(JoinHandle<(Content, io::Result<Bytes>)>),
    Over,
}

/// Waits for other threads, no longer than the exchange may take.
#[derive(Debug)]
pub(crate) struct Waiting {
    timers: Timers,
    is_bounded: bool,
}

/// Reads the first piece by the thread that has opened the file.
pub(crate) fn first_piece(mut served: Served) -> Result<(Served, Bytes), Fault> {
    let piece = served.content.as_mut().map(Content::read);
    let piece = piece.transpose()?.unwrap_or_default();
    Ok((served, piece))
}

impl FileBody {
    pub(crate) fn new(piece: Bytes, content: Content, waiting: Waiting) -> Self {
        Self {
            left: content.left() + piece.len() as u64,
            state: State::Begun(piece, content),
            waiting,
        }
    }

    /// How many bytes the client has not got yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Problem>>> {
        loop {
            match std::mem::replace(&mut self.state, State::Over) {
                State::Over => return Poll::Ready(None),
                State::Begun(piece, content) => {
                    self.state = State::Held(content);
                    if !piece.is_empty() {
                        return Poll::Ready(Some(Ok(self.give(piece))));
                    }
                }
                State::Held(content) if content.left() == 0 => {}
                State::Held(mut content) => {
                    self.state = State::Reading(spawn_blocking(move || {
                        let piece = content.read();
                        (content, piece)
                    }));
                }
                State::Reading(mut thread) => {
                    let Poll::Ready(read) = self.waiting.poll(&mut thread, cx) else {
                        self.state = State::Reading(thread);
                        return Poll::Pending;
                    };
                    let (content, piece) = match read {
                        Ok((content, Ok(piece))) => (content, piece),
                        Ok((_, Err(error))) => return Poll::Ready(Some(Err(unreadable(&error)))),
                        Err(problem) => return Poll::Ready(Some(Err(problem))),
                    };
                    self.state = State::Held(content);
                    return Poll::Ready(Some(Ok(self.give(piece))));
                }
            }
        }
    }

    fn give(&mut self, piece: Bytes) -> Frame<Bytes> {
        self.left -= self.left.min(piece.len() as u64);
        Frame::data(piece)
    }
}

impl Waiting {
    /// On these timers, which have an end if `is_bounded`.
    pub(crate) fn new(timers: Timers, is_bounded: bool) -> Self {
        Self { timers, is_bounded }
    }

    pub(crate) async fn for_thread<T>(&self, mut thread: JoinHandle<T>) -> Result<T, Problem> {
        poll_fn(|cx| self.poll(&mut thread, cx)).await
    }

    fn poll<T>(
        &self,
        thread: &mut JoinHandle<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Problem>> {
        if let Poll::Ready(done) = Pin::new(thread).poll(cx) {
            let lost = |_| Problem::new(Reason::InternalError, Detail::text("a thread was lost"));
            return Poll::Ready(done.map_err(lost));
        }
        let deadline = self.timers.deadline();
        // The connection itself looks after a client that takes nothing.
        if !self.is_bounded || deadline.running() == Some(Timer::ResponseWrite) {
            return Poll::Pending;
        }
        if let Some((timer, after)) = deadline.take_expired() {
            return Poll::Ready(Err(timeout_problem(timer, after)));
        }
        Poll::Pending
    }
}

fn unreadable(error: &io::Error) -> Problem {
    let detail = Detail::text(error.kind().to_string());
    Problem::new(Reason::StaticReadFailed, detail)
}
