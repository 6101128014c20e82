//! One attempt by HTTP/1.1.

use super::link::Kept;
use super::{Answered, Attempts, Tried};
use crate::request_body::RequestBody;
use crate::{interim, replay};
use http::{Request, Response};
use hyper::body::Incoming;
use proxy_pool::{Connection, SendFault};
use std::rc::Rc;

impl Attempts<'_, '_> {
    /// Sends `request` by a connection that is its own, and waits for the head of its response.
    pub(super) async fn send_alone(
        &mut self,
        mut kept: Kept,
        request: Request<RequestBody>,
    ) -> Tried {
        match self.attempt(&mut kept.connection, request).await {
            Ok(response) => Tried::Answered(Answered::Http1(response, kept)),
            // The target had closed a kept connection: nothing was sent, nobody is to blame.
            Err(SendFault::Unsent(unsent)) if kept.used => {
                self.note_stale();
                Tried::Again(*unsent)
            }
            Err(fault) => {
                let repeated = self.repeat(kept, &fault);
                let problem = self.problem(&fault);
                repeated.map_or(Tried::Failed(problem), Tried::Again)
            }
        }
    }

    fn attempt(
        &self,
        connection: &mut Connection<RequestBody>,
        request: Request<RequestBody>,
    ) -> impl Future<Output = Result<Response<Incoming>, SendFault<Request<RequestBody>>>> {
        self.start_timer();
        let client = Rc::clone(self.exchange.client());
        let understands = self.client_takes_interim();
        let deadline = self.timers.deadline();
        connection.send(self.wire, request, deadline, move |wire| {
            let heads = wire.take_informational();
            if !heads.is_empty() && understands {
                client.announce(&interim::for_clients(&heads));
            }
        })
    }

    /// The request again, when a kept connection ended without a word and it may be repeated.
    fn repeat(
        &mut self,
        link: Kept,
        fault: &SendFault<Request<RequestBody>>,
    ) -> Option<Request<RequestBody>> {
        let silent = link.used && link.connection.wire().received() == 0;
        let closed = matches!(fault, SendFault::Closed(_));
        if !silent || !closed || !self.wire.replayable || !self.may_retry() {
            return None;
        }
        let again = replay::request(&link.connection.into_sent_head())?;
        self.note_stale();
        self.note_retry();
        Some(again)
    }
}
