//! Handle through which requests ask the store's thread for tokens.

use crate::bucket::SharedRate;
use crate::status::Status;
use crate::thread::{self, TokenRequest};
use proxy_limits::RateDecision;
use redis::{Client, RedisError};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// The server, and how long it may take.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct StoreSettings {
    /// `redis://[user:password@]host[:port][/database]`.
    pub url: String,
    /// Longest time for an answer.
    pub timeout: Duration,
}

/// Token buckets on a server. Dropping it ends its thread and its connection.
#[derive(Debug)]
pub struct SharedBuckets {
    asks: mpsc::Sender<TokenRequest>,
    status: Arc<Status>,
}

/// A pending decision: `None` if the server does not answer in time.
#[derive(Debug)]
pub struct Answer {
    reply: Option<oneshot::Receiver<Option<RateDecision>>>,
    status: Arc<Status>,
}

/// Maximum number of queued queries; further ones are refused.
const MAX_QUEUED_QUERIES: usize = 1_024;

impl SharedBuckets {
    /// Buckets on the server of `settings`, which need not be up.
    ///
    /// # Errors
    /// The URL is not one of Redis, or there is no thread.
    pub fn start(settings: &StoreSettings) -> io::Result<Self> {
        let client = Client::open(&*settings.url);
        let client = client.map_err(|error: RedisError| io::Error::other(error))?;
        let (asks, asked) = mpsc::channel(MAX_QUEUED_QUERIES);
        let status = Arc::new(Status::default());
        thread::start(client, settings.timeout, asked, Arc::clone(&status))?;
        Ok(Self { asks, status })
    }

    /// Takes a token of the bucket called `key`.
    pub fn take(&self, key: Vec<u8>, rate: SharedRate) -> Answer {
        let (reply, answer) = oneshot::channel();
        let sent = self.asks.try_send(TokenRequest { key, rate, reply });
        Answer {
            reply: sent.is_ok().then_some(answer),
            status: Arc::clone(&self.status),
        }
    }

    /// Returns true if the server answered last.
    pub fn is_up(&self) -> bool {
        self.status.is_up.load(Ordering::Relaxed)
    }

    /// Number of requests that the server did not answer in time.
    pub fn unanswered(&self) -> u64 {
        self.status.unanswered.load(Ordering::Relaxed)
    }
}

impl Future for Answer {
    type Output = Option<RateDecision>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let decision = match &mut self.reply {
            None => None,
            Some(reply) => match Pin::new(reply).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(decision) => decision.ok().flatten(),
            },
        };
        if decision.is_none() {
            self.status.unanswered.fetch_add(1, Ordering::Relaxed);
        }
        Poll::Ready(decision)
    }
}

impl std::fmt::Debug for StoreSettings {
    /// Omits the URL, which may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreSettings")
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
