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
    /// Number of connections so far.
    generations: Cell<u64>,
    status: Arc<Status>,
    /// True if the server's last response was an error, such as from a server that takes no writes.
    refuses: Cell<bool>,
}

enum Link {
    Up(Connection),
    /// A connection is tried, now and again.
    Down,
}

/// A connection to the server.
#[derive(Clone)]
struct Connection {
    commands: MultiplexedConnection,
    /// Number of the connection, from 1. Late answers and timeouts of an earlier one do not change
    /// the state of the current one.
    generation: u64,
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
            generations: Cell::new(0),
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
        let commands = connected.map_err(|error| error.to_string())?;
        let generation = self.generations.get().wrapping_add(1);
        self.generations.set(generation);
        self.link.replace(Link::Up(Connection {
            commands,
            generation,
        }));
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
        let Some(connection) = connection else {
            // The receiver is dropped if the caller was cancelled.
            return reply.send(None).unwrap_or_default();
        };
        let Connection {
            mut commands,
            generation,
        } = connection;
        let this = Rc::clone(self);
        tokio::task::spawn_local(async move {
            let taking = bucket::take(&this.script, &mut commands, &key, rate);
            let decision = match timeout(this.answer_timeout, taking).await {
                Ok(Ok(decision)) => {
                    this.decided(generation);
                    Some(decision)
                }
                Ok(Err(error)) => this.lose(generation, !error.is_io_error(), &error),
                Err(elapsed) => this.lose(generation, this.refuses.get(), &elapsed),
            };
            reply.send(decision).unwrap_or_default();
        });
    }

    /// Returns true if the connection of this number is the one in use.
    fn is_current(&self, generation: u64) -> bool {
        let Link::Up(connection) = &*self.link.borrow() else {
            return false;
        };
        connection.generation == generation
    }

    fn decided(&self, generation: u64) {
        if self.is_current(generation) && self.refuses.replace(false) {
            self.status.is_up.store(true, Ordering::Relaxed);
        }
    }

    /// Ends the connection, and leaves the server alone for a while. Many questions on one
    /// connection fail at once, some of them after the next connection is in use.
    fn lose(
        self: &Rc<Self>,
        generation: u64,
        refuses: bool,
        error: &dyn std::error::Error,
    ) -> Option<RateDecision> {
        if !self.is_current(generation) {
            return None;
        }
        self.link.replace(Link::Down);
        self.refuses.set(refuses);
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
        None
    }
}
