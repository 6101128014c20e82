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
                if self.may_repeat(&kept, &fault) {
                    self.note_stale();
                    self.note_retry();
                    return Tried::Again;
                }
                Tried::Failed(problem)
            }
        }
    }

    /// Whether a kept connection ended without a word and the request may be sent again.
    fn may_repeat(&mut self, kept: &Kept, fault: &SendFault) -> bool {
        let silent = kept.used && kept.connection.received() == 0;
        let closed = matches!(fault, SendFault::Closed(_));
        silent && closed && self.replayable && self.may_retry()
    }
}
