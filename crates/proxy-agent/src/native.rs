//! The connections of one worker to an agent with the proxy's own protocol.

use crate::call_context::CallContext;
use crate::connection::{Connection, driver};
use crate::error::CallError;
use crate::session::{HeadAnswer, Session};
use agent_protocol::{EventKind, ProxyMessage, RequestHeaders};
use proxy_plan::AgentEndpoint;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Connections of one worker to one agent for requests with bodies. Requests without a body have
/// one more, so that they never wait behind bodies alone.
const MAX_BODY_CONNECTIONS: usize = 3;
/// Number of calls on a connection from which another one is preferred.
const BUSY_CALLS: usize = 4;
/// Wait after the first failure to connect; each further failure doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// Maximum wait after a failure to connect.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The connections of one worker to one agent, opened on demand and closed on drop.
#[derive(Debug)]
pub(crate) struct NativeClient {
    endpoint: Arc<AgentEndpoint>,
    connections: RefCell<Vec<Rc<Connection>>>,
    /// Consecutive failures to connect.
    failures: Cell<u32>,
    last_error: RefCell<Option<CallError>>,
    /// Earliest time of the next connection attempt, since the worker's start.
    retry_at: Cell<Duration>,
}

impl NativeClient {
    pub(crate) fn new(endpoint: Arc<AgentEndpoint>) -> Self {
        Self {
            endpoint,
            connections: RefCell::default(),
            failures: Cell::new(0),
            last_error: RefCell::default(),
            retry_at: Cell::default(),
        }
    }

    /// Requests a decision on the head of a request, at the time `now` since the worker's start.
    /// The id and the number of the event in `head` are replaced.
    ///
    /// If the connection ends before the answer, the request is sent again once, on another
    /// connection: an agent may restart at any time. The same applies to a request that waited for
    /// a further connection that fails.
    ///
    /// # Errors
    /// There is no decision.
    pub(crate) async fn begin(
        &self,
        now: Duration,
        mut head: RequestHeaders<'_>,
        context: &CallContext,
    ) -> Result<HeadAnswer, CallError> {
        let connection = self.connection(now, head.has_body)?;
        let was_ready = connection.is_ready();
        let answer = begin_on(connection, &mut head, context).await;
        let is_sent_again = match &answer {
            Err(CallError::Closed) => was_ready || self.has_ready(),
            Err(CallError::Unreachable(_)) => !was_ready && self.has_ready(),
            Ok(_) | Err(_) => false,
        };
        if !is_sent_again {
            return answer;
        }
        let connection = self.connection(now, head.has_body)?;
        begin_on(connection, &mut head, context).await
    }

    fn has_ready(&self) -> bool {
        let connections = self.connections.borrow();
        connections.iter().any(|one| one.is_ready())
    }

    /// The connection for a new request. A further one is opened if all permitted ones are busy.
    fn connection(&self, now: Duration, has_body: bool) -> Result<Rc<Connection>, CallError> {
        let mut connections = self.connections.borrow_mut();
        self.remove_ended(&mut connections, now);
        let wants_bodies = connections.iter().find_map(|one| one.wants_bodies());
        let shows_body = has_body && wants_bodies != Some(false);
        let usable = connections
            .iter()
            .filter(|one| one.takes_bodies || !shows_body);
        let best = usable.min_by_key(|one| (one.is_congested(), !one.is_ready(), one.load()));
        let best = best.map(Rc::clone);
        let is_busy = best
            .as_ref()
            .is_none_or(|best| best.is_congested() || BUSY_CALLS <= best.load());
        let takes_bodies = next_takes_bodies(&connections, shows_body).filter(|_| is_busy);
        let may_open = self.retry_at.get() <= now;
        let is_opening = best.as_ref().is_some_and(|best| !best.is_ready());
        match (best, takes_bodies) {
            (best, Some(takes_bodies)) if may_open && !is_opening => {
                let opened = Connection::new(Arc::clone(&self.endpoint), takes_bodies);
                let opened = Rc::new(opened);
                connections.push(Rc::clone(&opened));
                tokio::task::spawn_local(driver::run(Rc::clone(&opened)));
                let best = best.filter(|best| !best.is_congested());
                Ok(best.unwrap_or(opened))
            }
            (Some(best), _) => Ok(best),
            (None, _) => {
                let error = self.last_error.borrow().clone();
                Err(error.unwrap_or(CallError::Closed))
            }
        }
    }

    /// Removes connections that accept no further requests. A connection that was never ready
    /// counts as a failure to connect.
    fn remove_ended(&self, connections: &mut Vec<Rc<Connection>>, now: Duration) {
        connections.retain(|connection| {
            if let Some(error) = connection.failed_to_open() {
                let failures = self.failures.get();
                let wait = FIRST_WAIT.saturating_mul(1 << failures.min(8));
                self.failures.set(failures.saturating_add(1));
                self.retry_at.set(now + wait.min(MAX_WAIT));
                self.last_error.replace(Some(error));
            } else if connection.is_ready() {
                self.failures.set(0);
            }
            connection.takes_requests()
        });
    }
}

impl Drop for NativeClient {
    fn drop(&mut self) {
        for connection in self.connections.take() {
            connection.close(&CallError::Closed);
        }
    }
}

/// Returns true if the next connection is for requests with bodies; `None` if a request with this
/// `shows_body` may not open one. The first connection is for all requests. The second one excludes
/// bodies if a request without a body opens it.
fn next_takes_bodies(connections: &[Rc<Connection>], shows_body: bool) -> Option<bool> {
    let with_bodies = connections.iter().filter(|one| one.takes_bodies).count();
    let is_reserved = with_bodies < connections.len();
    if !shows_body && !is_reserved && !connections.is_empty() {
        return Some(false);
    }
    (with_bodies < MAX_BODY_CONNECTIONS).then_some(true)
}

async fn begin_on(
    connection: Rc<Connection>,
    head: &mut RequestHeaders<'_>,
    context: &CallContext,
) -> Result<HeadAnswer, CallError> {
    let agreement = connection.ready().await?;
    let mut session = Session::new(connection, agreement)?;
    let number = session.next_event();
    (head.id, head.seq) = (number.id, number.seq);
    let event = ProxyMessage::RequestHeaders(head.clone());
    let kind = EventKind::RequestHeaders;
    let decision = session.call(&event, kind, false, context).await?;
    Ok(HeadAnswer {
        decision,
        session: Some(session),
    })
}
