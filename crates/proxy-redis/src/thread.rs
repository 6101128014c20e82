//! The thread with the connection to the server: requests wait for its answers, which a reload on the
//! control thread would delay.

use crate::bucket::{self, SharedRate};
use crate::status::Status;
use proxy_limits::RateDecision;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Script};
use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::Builder;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::LocalSet;
use tokio::time::{sleep, timeout};

/// A question for the server.
#[derive(Debug)]
pub(crate) struct TokenRequest {
    pub(crate) key: Vec<u8>,
    pub(crate) rate: SharedRate,
    pub(crate) reply: oneshot::Sender<Option<RateDecision>>,
}

/// Time without a question to a server that has failed.
const RETRY_INTERVAL: Duration = Duration::from_secs(1);
/// Longest time for a connection, which no request waits for.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

struct Connector {
    client: Client,
    answer_timeout: Duration,
    script: Script,
    link: RefCell<Link>,
    status: Arc<Status>,
    /// True if the server's last response was an error, such as from a server that takes no writes.
    refuses: Cell<bool>,
}

enum Link {
    Up(MultiplexedConnection),
    /// A connection is tried, now and again.
    Down,
}

/// Starts the thread. It ends when `asked` is closed.
///
/// # Errors
/// The operating system starts no thread.
pub(crate) fn start(
    client: Client,
    answer_timeout: Duration,
    mut asked: mpsc::Receiver<TokenRequest>,
    status: Arc<Status>,
) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let serve = move || {
        let connector = Rc::new(Connector {
            client,
            answer_timeout,
            script: bucket::script(),
            link: RefCell::new(Link::Down),
            status,
            refuses: Cell::new(false),
        });
        let tasks = LocalSet::new();
        tasks.block_on(&runtime, async {
            connector.connect();
            while let Some(ask) = asked.recv().await {
                connector.answer(ask);
            }
        });
    };
    Builder::new().name("rate-store".to_owned()).spawn(serve)?;
    Ok(())
}

impl Connector {
    /// Connects, trying again until there is a connection.
    fn connect(self: &Rc<Self>) {
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            while let Err(error) = this.try_connect().await {
                tracing::warn!(
                    error,
                    "the store of rate limits cannot be reached; each proxy limits for itself"
                );
                sleep(RETRY_INTERVAL).await;
            }
        });
    }

    async fn try_connect(&self) -> Result<(), String> {
        // The client's own timeout must not be below the configured one.
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(CONNECT_TIMEOUT.max(self.answer_timeout)));
        let client = &self.client;
        let connecting = client.get_multiplexed_async_connection_with_config(&config);
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        let connected = connected.map_err(|elapsed| elapsed.to_string())?;
        let connection = connected.map_err(|error| error.to_string())?;
        self.link.replace(Link::Up(connection));
        self.status
            .is_up
            .store(!self.refuses.get(), Ordering::Relaxed);
        tracing::info!("the store of rate limits answers");
        Ok(())
    }

    /// Answers at once if there is no connection.
    fn answer(self: &Rc<Self>, ask: TokenRequest) {
        let TokenRequest { key, rate, reply } = ask;
        let connection = match &*self.link.borrow() {
            Link::Up(connection) => Some(connection.clone()),
            Link::Down => None,
        };
        let Some(mut connection) = connection else {
            // The receiver is dropped if the caller was cancelled.
            return reply.send(None).unwrap_or_default();
        };
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let taking = bucket::take(&this.script, &mut connection, &key, rate);
            let decision = match timeout(this.answer_timeout, taking).await {
                Ok(Ok(decision)) => {
                    this.decided();
                    Some(decision)
                }
                Ok(Err(error)) => {
                    this.refuses.set(!error.is_io_error());
                    this.lose(&error)
                }
                Err(elapsed) => this.lose(&elapsed),
            };
            reply.send(decision).unwrap_or_default();
        });
    }

    fn decided(&self) {
        if self.refuses.replace(false) {
            self.status.is_up.store(true, Ordering::Relaxed);
        }
    }

    /// Leaves the server alone for a while. Many questions on one connection fail at once.
    fn lose(self: &Rc<Self>, error: &dyn std::error::Error) -> Option<RateDecision> {
        let lost = self.link.replace(Link::Down);
        if let Link::Up(_) = lost {
            self.status.is_up.store(false, Ordering::Relaxed);
            tracing::warn!(
                error = error.to_string(),
                "the store of rate limits does not answer; each proxy limits for itself"
            );
            let this = Rc::clone(self);
            tokio::task::spawn_local(async move {
                sleep(RETRY_INTERVAL).await;
                this.connect();
            });
        }
        None
    }
}
