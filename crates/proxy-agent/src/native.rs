//! The connections of one worker to an agent that speaks the proxy's own protocol.

use crate::connection::Connection;
use crate::driver;
use crate::early_denial::EarlyDenial;
use crate::error::CallError;
use crate::session::{HeadAnswer, Session};
use agent_protocol::{ProxyMessage, RequestHeaders};
use proxy_plan::AgentEndpoint;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// Connections of one worker to one agent.
const MAX_CONNECTIONS: usize = 4;
/// Calls without an answer on every connection that make it worth another one.
const BUSY_CALLS: usize = 4;
/// Wait after the first failure to connect; each further one doubles it.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest wait after a failure to connect.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The connections of one worker to one agent, opened on demand. Dropped, it closes them.
#[derive(Debug)]
pub(crate) struct NativeClient {
    endpoint: Arc<AgentEndpoint>,
    connections: RefCell<Vec<Rc<Connection>>>,
    /// Failures to connect in a row, and the error of the last one.
    failures: Cell<u32>,
    last_error: RefCell<Option<CallError>>,
    /// When it may connect again, since the worker's start.
    retry_at: Cell<Duration>,
}

impl NativeClient {
    /// No connections yet.
    pub(crate) fn new(endpoint: Arc<AgentEndpoint>) -> Self {
        Self {
            endpoint,
            connections: RefCell::default(),
            failures: Cell::new(0),
            last_error: RefCell::default(),
            retry_at: Cell::default(),
        }
    }

    /// Asks about the head of a request, at the time `now` since the worker's start. `head` has the id
    /// and the number of events replaced.
    ///
    /// A request that was sent on a connection which ends before it was answered is sent again once, on
    /// another one: an agent may restart at any time.
    ///
    /// # Errors
    /// There is no decision.
    pub(crate) async fn begin(
        &self,
        now: Duration,
        mut head: RequestHeaders<'_>,
        denial: &EarlyDenial,
    ) -> Result<HeadAnswer, CallError> {
        let connection = self.connection(now)?;
        let was_ready = connection.is_ready();
        match begin_on(connection, &mut head, denial).await {
            Err(CallError::Closed) if was_ready => {
                let connection = self.connection(now)?;
                begin_on(connection, &mut head, denial).await
            }
            answer => answer,
        }
    }

    /// The connection for a new request.
    fn connection(&self, now: Duration) -> Result<Rc<Connection>, CallError> {
        let mut connections = self.connections.borrow_mut();
        self.remove_ended(&mut connections, now);
        let best = connections
            .iter()
            .min_by_key(|one| (!one.is_ready(), one.load()));
        let best = best.map(Rc::clone);
        let is_free = best
            .as_ref()
            .is_some_and(|best| best.load() < BUSY_CALLS || connections.len() == MAX_CONNECTIONS);
        let may_open = self.retry_at.get() <= now;
        let is_opening = connections.iter().any(|one| !one.is_ready());
        match best {
            Some(best) if is_free || !may_open || is_opening => Ok(best),
            best if may_open => {
                let opened = Rc::new(Connection::new(Arc::clone(&self.endpoint)));
                connections.push(Rc::clone(&opened));
                tokio::task::spawn_local(driver::run(Rc::clone(&opened)));
                Ok(best.unwrap_or(opened))
            }
            _ => {
                let error = self.last_error.borrow().clone();
                Err(error.unwrap_or(CallError::Closed))
            }
        }
    }

    /// Removes connections that take no further requests. One that has never been ready counts as a
    /// failure to connect.
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

async fn begin_on(
    connection: Rc<Connection>,
    head: &mut RequestHeaders<'_>,
    denial: &EarlyDenial,
) -> Result<HeadAnswer, CallError> {
    let agreement = connection.ready().await?;
    let mut session = Session::new(connection, agreement.wants)?;
    (head.id, head.seq) = session.next_event();
    let event = ProxyMessage::RequestHeaders(head.clone());
    let decision = session
        .call(
            &event,
            (agent_protocol::EventKind::RequestHeaders, false),
            denial,
        )
        .await?;
    Ok(HeadAnswer {
        decision,
        session: Some(session),
    })
}
