//! Rejection of connections beyond a limit: with a response while that is cheap, which with TLS it
//! never is.

use crate::accept::WorkerListener;
use crate::client_socket::ClientSocket;
use crate::client_stream::ClientStream;
use crate::linger;
use crate::timeout::ConnectionDeadline;
use proxy_clock::Deadline;
use proxy_errors::Problem;
use proxy_pipeline::{
    ConnectionInfo, Peer, UnreadRequest, Worker, log_connection_problem, refuse_unread,
};
use std::rc::Rc;

/// Maximum number of connections per worker and listener being rejected with a response; further
/// ones are closed without one.
const MAX_REJECTIONS_IN_PROGRESS: u32 = 256;

/// Answers 503 and closes.
pub(crate) fn reject(
    worker: Rc<Worker>,
    listener: &Rc<WorkerListener>,
    stream: ClientSocket,
    peer: Peer,
    problem: Problem,
) {
    let Some(slot) = RejectionSlot::take(listener) else {
        return;
    };
    let settings = Rc::clone(&listener.settings.borrow());
    tokio::task::spawn_local(async move {
        let index = Rc::clone(&slot.0.index);
        let terms = Rc::clone(&settings.terms);
        let client = Rc::new(ConnectionInfo::new(index, peer, true, terms));
        let deadline = Rc::<Deadline>::default();
        let entry = worker.timers.register(Rc::clone(&deadline));
        if settings.tls.is_some() || settings.proxy_protocol {
            // A response would require a handshake or a PROXY header, which is the expensive part.
            log_connection_problem(&worker, &client, &problem);
            return;
        }
        let answer = refuse_unread(&worker, &client, problem, UnreadRequest::default());
        let timeout = ConnectionDeadline {
            clock: &worker.clock,
            deadline: &deadline,
        };
        let mut transport = ClientStream::Plain(stream);
        linger::answer(&mut transport, &answer.bytes, settings.write_time, timeout).await;
        drop((entry, slot));
    });
}

/// One of [`MAX_REJECTIONS_IN_PROGRESS`].
struct RejectionSlot(Rc<WorkerListener>);

impl RejectionSlot {
    fn take(listener: &Rc<WorkerListener>) -> Option<Self> {
        let taken = listener.rejections.get();
        (taken < MAX_REJECTIONS_IN_PROGRESS).then(|| {
            listener.rejections.set(taken + 1);
            Self(Rc::clone(listener))
        })
    }
}

impl Drop for RejectionSlot {
    fn drop(&mut self) {
        let taken = &self.0.rejections;
        taken.set(taken.get().saturating_sub(1));
    }
}
