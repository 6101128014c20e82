//! One attempt by HTTP/1.1.

use super::link::Kept;
use super::{Answered, Attempts, Tried};
use crate::interim;
use proxy_pool::SendFault;

impl Attempts<'_, '_> {
    /// Sends the request by a connection that is its own, and waits for the head of its response.
    pub(super) async fn send_alone(&mut self, mut kept: Kept) -> Tried {
        self.start_timer();
        let understands = self.client_takes_interim();
        let client = self.exchange.client();
        let notice = |head: &[u8]| {
            if understands {
                client.announce(&interim::for_clients(head));
            }
        };
        let exchange = &*self.exchange;
        let more = |out: &mut Vec<u8>| {
            if let Some(added) = &exchange.added {
                let closing = &exchange.closing;
                added.write(&closing.client.peer, &closing.facts.correlation_id, out);
            }
        };
        let deadline = self.timers.deadline();
        let connection = &mut kept.connection;
        let sending = connection.send(self.kind, (&mut self.request, more), deadline, notice);
        match sending.await {
            Ok(response) => Tried::Answered(Answered::Http1(response, kept)),
            // The target had closed a kept connection: nothing was sent, nobody is to blame.
            Err(SendFault::Unsent) if kept.used => {
                self.note_stale();
                Tried::Again
            }
            Err(fault) => {
                let problem = self.problem(&fault);
                if !self.may_repeat(&kept, &fault) {
                    return Tried::Failed(problem);
                }
                self.note_retry();
                if kept.used {
                    // It may have been ending already when the request was sent.
                    self.note_stale();
                    return Tried::Again;
                }
                self.note_failure(&problem);
                Tried::Elsewhere
            }
        }
    }

    /// Whether the request may be sent again: nothing of it was sent, or the connection ended without a
    /// byte of an answer and the request is idempotent.
    fn may_repeat(&mut self, kept: &Kept, fault: &SendFault) -> bool {
        let repeatable = match fault {
            SendFault::Unsent => true,
            SendFault::Closed(_) => self.replayable && kept.connection.received() == 0,
            SendFault::BadResponse(_)
            | SendFault::RequestBody
            | SendFault::TimedOut { .. }
            | SendFault::Call(_) => false,
        };
        repeatable && self.may_retry()
    }
}
