//! Rejection of connections beyond a limit: with a response while that is cheap, which with TLS it
//! never is.

use crate::connection::client_socket::ClientSocket;
use crate::connection::client_stream::ClientStream;
use crate::connection::linger;
use crate::connection::settings::ConnectionSettings;
use crate::connection::timeout::ConnectionDeadline;
use proxy_clock::Deadline;
use proxy_errors::Problem;
use proxy_pipeline::{
    ConnectionInfo, Peer, UnreadRequest, Worker, count_closed_connection, log_connection_problem,
    refuse_unread,
};
use std::cell::Cell;
use std::rc::Rc;

/// Maximum number of connections per worker and listener being rejected with a response; further
/// ones are closed without one, and counted.
const MAX_REJECTIONS_IN_PROGRESS: u32 = 256;

/// Number of connections to one listener that one worker is rejecting.
#[derive(Debug, Default)]
pub(crate) struct Rejections(Cell<u32>);

#[derive(Debug)]
pub(crate) struct Rejected {
    pub(crate) settings: Rc<ConnectionSettings>,
    /// Index of the listener in the active plan.
    pub(crate) listener: Rc<Cell<usize>>,
    pub(crate) peer: Peer,
    /// Names the limit that the connection exceeds.
    pub(crate) problem: Problem,
}

/// Answers 503 and closes.
pub(crate) fn reject(
    worker: Rc<Worker>,
    rejections: &Rc<Rejections>,
    rejected: Rejected,
    stream: ClientSocket,
) {
    let Rejected {
        settings,
        listener,
        peer,
        problem,
    } = rejected;
    let Some(slot) = RejectionSlot::take(rejections) else {
        count_closed_connection(&worker, peer.ip, &problem);
        return;
    };
    let terms = Rc::clone(&settings.terms);
    let client = Rc::new(ConnectionInfo::new(listener, peer, true, terms));
    if settings.has_no_cheap_response() {
        // A response would require a handshake or a PROXY header, which is the expensive part.
        log_connection_problem(&worker, &client, &problem);
        // The place is free once the connections that wait to be accepted are: of a burst, no more than the
        // maximum is logged.
        tokio::task::spawn_local(async move { drop(slot) });
        return;
    }
    let answer = refuse_unread(&worker, &client, problem, UnreadRequest::default());
    tokio::task::spawn_local(async move {
        let deadline = Rc::<Deadline>::default();
        let entry = worker.timers.register(Rc::clone(&deadline));
        let timeout = ConnectionDeadline {
            clock: &worker.clock,
            deadline: &deadline,
        };
        let mut transport = ClientStream::Plain(stream);
        linger::answer(
            &mut transport,
            &answer.bytes,
            settings.write_timeout,
            timeout,
        )
        .await;
        drop((entry, slot));
    });
}

/// A place among [`MAX_REJECTIONS_IN_PROGRESS`], given back on drop.
struct RejectionSlot(Rc<Rejections>);

impl RejectionSlot {
    fn take(rejections: &Rc<Rejections>) -> Option<Self> {
        let taken = rejections.0.get();
        (taken < MAX_REJECTIONS_IN_PROGRESS).then(|| {
            rejections.0.set(taken + 1);
            Self(Rc::clone(rejections))
        })
    }
}

impl Drop for RejectionSlot {
    fn drop(&mut self) {
        let Rejections(taken) = &*self.0;
        taken.set(taken.get().saturating_sub(1));
    }
}
