//! A body that is read into the store as fast as the upstream sends, while its client reads at
//! another pace.

use super::interruption::Interruption;
use super::upstream_body::UpstreamBody;
use crate::worker::state::Worker;
use bytes::Bytes;
use http::HeaderMap;
use http_body::{Frame, SizeHint};
use proxy_cache::{BodyReservation, Fill, ResponseHead, Variant};
use proxy_clock::{Deadline, RequestTimers, Timer};
use proxy_pool::SendError;
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

/// Maximum size of a piece that is copied for the client, in bytes.
const MAX_PIECE_BYTES: usize = 64 * 1024;
/// Minimum growth of the memory for a body without a length, in bytes.
const MIN_GROWTH_BYTES: usize = 4 * 1024;
/// Maximum time for reading a body into the store. The rest of a slower one goes to its client
/// only.
const MAX_FILL_TIME: Duration = Duration::from_mins(1);

/// The destination of a body in the store.
#[derive(Debug)]
pub(crate) struct FillTarget {
    pub(crate) fill: Fill,
    pub(crate) head: ResponseHead,
    pub(crate) variant: Variant,
    /// The announced length of the body.
    pub(crate) length: Option<u64>,
}

/// The client's end of a body that is being stored.
#[derive(Debug)]
pub(super) struct FillingBody {
    progress: Rc<RefCell<Progress>>,
    /// Bytes that the client has.
    taken: usize,
    timers: RequestTimers,
    size: SizeHint,
    /// The rest of a body that could not be stored.
    rest: Option<Box<UpstreamBody>>,
}

/// The bytes so far, between the task that reads them and the client's end.
#[derive(Debug)]
struct Progress {
    body: Vec<u8>,
    trailers: Option<HeaderMap>,
    state: FillState,
    reader: Option<Waker>,
    /// Memory of bytes that will not be stored, counted until the client has them.
    reserved: Option<BodyReservation>,
}

#[derive(Debug)]
enum FillState {
    Reading,
    /// The whole body is in the store.
    Stored(Bytes),
    /// The body is not stored; the client's end reads the rest.
    Handed(Box<UpstreamBody>),
    Failed(Interruption),
    /// Everything was sent to the client, or handed over.
    Over,
}

/// The end that reads the upstream, in a task of the worker.
struct Filler {
    source: Box<UpstreamBody>,
    /// `None` once storing has ended.
    target: Option<FillTarget>,
    progress: Rc<RefCell<Progress>>,
    worker: Rc<Worker>,
    end_by: Duration,
}

/// Begins to read `source` into the store, by a task of the worker. Returns the client's end.
pub(super) fn begin(
    worker: &Rc<Worker>,
    mut source: Box<UpstreamBody>,
    target: FillTarget,
) -> FillingBody {
    let capacity = target
        .length
        .and_then(|length| usize::try_from(length).ok());
    let progress = Rc::new(RefCell::new(Progress {
        body: Vec::with_capacity(capacity.unwrap_or_default()),
        trailers: None,
        state: FillState::Reading,
        reader: None,
        reserved: None,
    }));
    let deadline = Rc::new(Deadline::default());
    let own = RequestTimers::new(Rc::clone(&worker.clock), Rc::clone(&deadline), None);
    let timers = std::mem::replace(&mut source.timers, own);
    let size = source.body.size_hint();
    let filler = Filler {
        source,
        target: Some(target),
        progress: Rc::clone(&progress),
        end_by: worker.time.elapsed().saturating_add(MAX_FILL_TIME),
        worker: Rc::clone(worker),
    };
    tokio::task::spawn_local(run(filler, deadline));
    FillingBody {
        progress,
        taken: 0,
        timers,
        size,
        rest: None,
    }
}

async fn run(filler: Filler, deadline: Rc<Deadline>) {
    let _entry = filler.worker.timers.register(Rc::clone(&deadline));
    let mut filler = Some(filler);
    poll_fn(|cx| {
        deadline.watch(cx.waker());
        let Some(reading) = &mut filler else {
            return Poll::Ready(());
        };
        let ended = ready!(reading.poll(cx));
        if let Some(filler) = filler.take() {
            filler.finish(ended);
        }
        Poll::Ready(())
    })
    .await;
}

/// The outcome of reading.
enum Ended {
    Complete,
    /// The store has no room, or reading takes too long.
    Refused,
    Broken(SendError),
}

impl Filler {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ended> {
        loop {
            let frame = match ready!(self.source.poll(cx)) {
                Some(Ok(frame)) => frame,
                Some(Err(fault)) => return Poll::Ready(Ended::Broken(fault)),
                None => return Poll::Ready(Ended::Complete),
            };
            let fits = match frame.into_data() {
                Ok(data) => self.push(&data),
                Err(frame) => {
                    self.progress.borrow_mut().trailers = frame.into_trailers().ok();
                    true
                }
            };
            if !fits {
                return Poll::Ready(Ended::Refused);
            }
        }
    }

    /// Adds a piece. Returns whether the body so far may be stored.
    fn push(&mut self, data: &Bytes) -> bool {
        let mut progress = self.progress.borrow_mut();
        let body = &mut progress.body;
        if body.capacity() - body.len() < data.len() {
            // Growth by a quarter: doubling could take twice the memory that is available for the
            // body.
            body.reserve_exact(data.len().max(body.len() / 4).max(MIN_GROWTH_BYTES));
        }
        body.extend_from_slice(data);
        let (length, memory) = (body.len() as u64, body.capacity() as u64);
        let target = self.target.as_mut();
        let has_room = target.is_some_and(|target| target.fill.reserve(length, memory));
        progress.wake();
        has_room && self.worker.time.elapsed() < self.end_by
    }

    fn finish(self, ended: Ended) {
        let Self {
            source,
            target,
            progress,
            worker,
            end_by: _,
        } = self;
        let now = worker.time.clock_reading();
        let mut progress = progress.borrow_mut();
        let Some(FillTarget {
            fill,
            head,
            variant,
            length: _,
        }) = target
        else {
            return;
        };
        progress.state = match ended {
            Ended::Complete => {
                let body = std::mem::take(&mut progress.body).into_boxed_slice();
                FillState::Stored(fill.publish(head, variant, body, now).body.clone())
            }
            Ended::Refused => {
                progress.reserved = Some(fill.mark_uncacheable(now));
                FillState::Handed(source)
            }
            Ended::Broken(fault) => FillState::Failed(Interruption::Upstream(fault)),
        };
        progress.wake();
    }
}

impl Progress {
    fn wake(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

impl FillingBody {
    pub(super) fn is_over(&self) -> bool {
        if let Some(rest) = &self.rest {
            return rest.body.is_end_stream();
        }
        let progress = self.progress.borrow();
        if progress.trailers.is_some() {
            return false;
        }
        match &progress.state {
            FillState::Stored(body) => self.taken >= body.len(),
            FillState::Over => true,
            FillState::Reading | FillState::Handed(_) | FillState::Failed(_) => false,
        }
    }

    pub(super) fn size_hint(&self) -> SizeHint {
        match self.size.exact() {
            Some(all) => SizeHint::with_exact(all.saturating_sub(self.taken as u64)),
            None => SizeHint::default(),
        }
    }

    pub(super) fn poll(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interruption>>> {
        if let Some(rest) = &mut self.rest {
            return rest.poll(cx).map_err(Interruption::Upstream);
        }
        let progress = &mut *self.progress.borrow_mut();
        if let FillState::Stored(body) = &progress.state {
            let rest = body.slice(self.taken.min(body.len())..);
            if !rest.is_empty() {
                self.taken = body.len();
                return Poll::Ready(Some(Ok(Frame::data(rest))));
            }
        }
        let unread = progress.body.get(self.taken..).unwrap_or_default();
        if !unread.is_empty() {
            let piece = unread.get(..MAX_PIECE_BYTES).unwrap_or(unread);
            self.taken += piece.len();
            return Poll::Ready(Some(Ok(Frame::data(Bytes::copy_from_slice(piece)))));
        }
        match std::mem::replace(&mut progress.state, FillState::Over) {
            FillState::Reading => {
                progress.state = FillState::Reading;
                progress.reader = Some(cx.waker().clone());
                let deadline = self.timers.deadline();
                if deadline.running() == Some(Timer::ResponseWrite) {
                    return Poll::Pending;
                }
                match deadline.take_expired() {
                    Some((timer, after)) => {
                        let fault = SendError::TimedOut { timer, after };
                        Poll::Ready(Some(Err(Interruption::Upstream(fault))))
                    }
                    None => Poll::Pending,
                }
            }
            FillState::Handed(mut rest) => {
                rest.timers = self.timers.clone();
                progress.body = Vec::new();
                progress.reserved = None;
                self.rest
                    .insert(rest)
                    .poll(cx)
                    .map_err(Interruption::Upstream)
            }
            FillState::Failed(interruption) => Poll::Ready(Some(Err(interruption))),
            FillState::Stored(_) | FillState::Over => {
                let trailers = progress.trailers.take();
                Poll::Ready(trailers.map(|trailers| Ok(Frame::trailers(trailers))))
            }
        }
    }
}
