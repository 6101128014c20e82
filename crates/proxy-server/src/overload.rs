//! Connections beyond `max-total-connections`: told so, as long as that stays cheap; by TLS it never is.

use crate::accept::WorkerListener;
use crate::client_socket::ClientSocket;
use crate::client_stream::ClientStream;
use crate::linger;
use crate::timeout::ConnectionDeadline;
use proxy_clock::Deadline;
use proxy_errors::{Detail, Problem, Reason};
use proxy_limits::LimitReached;
use proxy_pipeline::{ConnectionInfo, Peer, UnreadRequest, Worker, note_connection, refuse_unread};
use std::rc::Rc;

/// Connections of one worker and listener that are being told at once; the rest are closed without a word.
const MAX_REJECTIONS_IN_PROGRESS: u32 = 256;

/// Answers 503 and closes.
pub(crate) fn start(
    worker: Rc<Worker>,
    door: &Rc<WorkerListener>,
    stream: ClientSocket,
    peer: Peer,
    full: LimitReached,
) {
    let Some(place) = Place::take(door) else {
        return;
    };
    let settings = Rc::clone(&door.settings.borrow());
    tokio::task::spawn_local(async move {
        let index = Rc::clone(&place.0.index);
        let terms = Rc::clone(&settings.terms);
        let client = Rc::new(ConnectionInfo::new(index, peer, true, terms));
        let deadline = Rc::<Deadline>::default();
        let entry = worker.sweep.register(Rc::clone(&deadline));
        let (current, limit) = (u64::from(full.held), u64::from(full.max));
        let problem = Problem::new(Reason::ConnectionLimit, Detail::Limit { current, limit });
        if settings.tls.is_some() || settings.proxy_protocol {
            // An answer would take a handshake, or a header, and that is what costs.
            note_connection(&worker, &client, &problem);
            return;
        }
        let answer = refuse_unread(&worker, &client, problem, UnreadRequest::default());
        let patience = ConnectionDeadline {
            clock: &worker.clock,
            deadline: &deadline,
        };
        let mut transport = ClientStream::Plain(stream);
        linger::answer(&mut transport, &answer.bytes, settings.write_time, patience).await;
        drop((entry, place));
    });
}

/// One of [`MAX_REJECTIONS_IN_PROGRESS`].
struct Place(Rc<WorkerListener>);

impl Place {
    fn take(door: &Rc<WorkerListener>) -> Option<Self> {
        let taken = door.turned_away.get();
        (taken < MAX_REJECTIONS_IN_PROGRESS).then(|| {
            door.turned_away.set(taken + 1);
            Self(Rc::clone(door))
        })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let taken = &self.0.turned_away;
        taken.set(taken.get().saturating_sub(1));
    }
}
