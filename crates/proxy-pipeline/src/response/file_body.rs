//! A response body read from a file by threads, at most one chunk ahead of the client.

use crate::failure::timeout_problem;
use crate::worker::disk::{Disk, DiskJob};
use bytes::Bytes;
use http_body::Frame;
use proxy_clock::{RequestTimers, Timer};
use proxy_errors::{Detail, Problem, Reason};
use proxy_files::Content;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::oneshot::{Receiver, channel};

/// The rest of a file.
#[derive(Debug)]
pub(crate) struct FileBody {
    state: ReadState,
    /// Bytes not sent yet.
    left: u64,
    waiting: Waiting,
}

#[derive(Debug)]
enum ReadState {
    /// The first chunk, read with the opening, and the rest.
    Begun(Bytes, Content),
    Held(Content),
    Reading(Receiver<(Content, io::Result<Bytes>)>),
    Over,
}

/// Waits for file operations, within the chunk's and the exchange's timers.
#[derive(Debug)]
pub(crate) struct Waiting {
    timers: RequestTimers,
    disk: Disk,
}

/// Maximum time for opening a file, and for reading each chunk.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

impl FileBody {
    pub(crate) fn new(piece: Bytes, content: Content, waiting: Waiting) -> Self {
        Self {
            left: content.left() + piece.len() as u64,
            state: ReadState::Begun(piece, content),
            waiting,
        }
    }

    /// Number of bytes not sent yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Problem>>> {
        loop {
            match std::mem::replace(&mut self.state, ReadState::Over) {
                ReadState::Over => return Poll::Ready(None),
                ReadState::Begun(piece, content) => {
                    self.state = ReadState::Held(content);
                    if !piece.is_empty() {
                        return Poll::Ready(Some(Ok(self.data_frame(piece))));
                    }
                }
                ReadState::Held(content) if content.left() == 0 => {}
                ReadState::Held(content) => {
                    let (answer, read) = channel();
                    self.waiting.submit(DiskJob::Read { content, answer });
                    self.state = ReadState::Reading(read);
                }
                ReadState::Reading(mut thread) => {
                    let Poll::Ready(read) = self.waiting.poll(&mut thread, cx) else {
                        self.state = ReadState::Reading(thread);
                        return Poll::Pending;
                    };
                    let (content, piece) = match read {
                        Ok((content, Ok(piece))) => (content, piece),
                        Ok((_, Err(error))) => return Poll::Ready(Some(Err(unreadable(&error)))),
                        Err(problem) => return Poll::Ready(Some(Err(problem))),
                    };
                    self.state = ReadState::Held(content);
                    return Poll::Ready(Some(Ok(self.data_frame(piece))));
                }
            }
        }
    }

    fn data_frame(&mut self, piece: Bytes) -> Frame<Bytes> {
        self.left -= self.left.min(piece.len() as u64);
        Frame::data(piece)
    }
}

impl Waiting {
    pub(crate) fn new(timers: RequestTimers, disk: Disk) -> Self {
        Self { timers, disk }
    }

    /// Queues a file operation.
    pub(crate) fn submit(&self, job: DiskJob) {
        self.disk.submit(job);
    }

    /// Polls for the result.
    pub(crate) fn poll<T>(
        &self,
        read: &mut Receiver<T>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<T, Problem>> {
        let deadline = self.timers.deadline();
        if let Poll::Ready(done) = Pin::new(read).poll(cx) {
            if deadline.running() == Some(Timer::FileRead) {
                self.timers.stop();
            }
            let lost = |_| Problem::new(Reason::InternalError, Detail::text("a thread was lost"));
            return Poll::Ready(done.map_err(lost));
        }
        // The connection handles a client that does not read.
        if deadline.running() == Some(Timer::ResponseWrite) {
            return Poll::Pending;
        }
        if let Some((timer, after)) = deadline.take_expired() {
            return Poll::Ready(Err(timeout_problem(timer, after)));
        }
        self.timers.ensure(Timer::FileRead, READ_TIMEOUT);
        Poll::Pending
    }
}

fn unreadable(error: &io::Error) -> Problem {
    let detail = Detail::text(error.kind().to_string());
    Problem::new(Reason::StaticReadFailed, detail)
}
