//! One listening socket and its connections.

use crate::access::Access;
use crate::activity::{Activity, Events};
use crate::connection;
use crate::service::AdminService;
use crate::state::AdminState;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Connections at once. One more ends the one on which nothing has happened for longest: callers
/// that hold connections keep nobody out.
const MOST_CONNECTIONS: usize = 32;

/// The pause after a connection could not be accepted, for example because there are too many open
/// files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// How long answers under way may take once the socket is to close.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A socket that listens.
#[derive(Debug)]
pub enum Listener {
    /// A TCP socket.
    Tcp(std::net::TcpListener),
    /// A Unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// Answers at `listener` until `stop` is ready, then ends in good order.
///
/// At most 32 connections are held; a head may have 8 KiB and take 30 seconds. Nothing here blocks
/// for long, so other work may share the thread.
///
/// # Errors
/// When the socket cannot be used with the runtime, at once.
pub async fn serve(
    listener: Listener,
    state: Arc<AdminState>,
    access: Arc<Access>,
    stop: impl Future<Output = ()>,
) -> io::Result<()> {
    let socket = Socket::from_listener(listener)?;
    let mut connections = Connections::new(AdminService::new(state, access));
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            () = &mut stop => break,
            accepted = socket.accept() => match accepted {
                Ok(stream) => connections.begin(stream),
                Err(error) if is_over(&error) => {}
                Err(_) => sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.tasks.join_next() => {}
        }
    }
    drop(socket);
    connections.finish().await;
    Ok(())
}

/// Whether only the connection that was to be accepted is gone.
fn is_over(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

/// A [`Listener`] that the runtime watches.
#[derive(Debug)]
enum Socket {
    Tcp(TcpListener),
    Unix(UnixListener),
}

#[derive(Debug)]
enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Socket {
    fn from_listener(listener: Listener) -> io::Result<Self> {
        match listener {
            Listener::Tcp(listener) => {
                listener.set_nonblocking(true)?;
                TcpListener::from_std(listener).map(Self::Tcp)
            }
            Listener::Unix(listener) => {
                listener.set_nonblocking(true)?;
                UnixListener::from_std(listener).map(Self::Unix)
            }
        }
    }

    async fn accept(&self) -> io::Result<Stream> {
        match self {
            Self::Tcp(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Stream::Tcp(stream))
            }
            Self::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok(Stream::Unix(stream))
            }
        }
    }
}

/// The connections of one socket.
#[derive(Debug)]
struct Connections {
    desk: AdminService,
    events: Events,
    stopping: watch::Sender<bool>,
    tasks: JoinSet<()>,
    open: Vec<(AbortHandle, Activity)>,
}

impl Connections {
    fn new(desk: AdminService) -> Self {
        Self {
            desk,
            events: Events::default(),
            stopping: watch::Sender::new(false),
            tasks: JoinSet::new(),
            open: Vec::new(),
        }
    }

    fn begin(&mut self, stream: Stream) {
        if let Stream::Tcp(stream) = &stream
            && stream.set_nodelay(true).is_err()
        {
            return;
        }
        self.make_room();
        let activity = self.events.begin();
        let (desk, seen) = (self.desk.clone(), activity.clone());
        let stopping = self.stopping.subscribe();
        let task = match stream {
            Stream::Tcp(stream) => self
                .tasks
                .spawn(connection::serve(stream, desk, seen, stopping)),
            Stream::Unix(stream) => self
                .tasks
                .spawn(connection::serve(stream, desk, seen, stopping)),
        };
        self.open.push((task, activity));
    }

    /// Ends the quietest connection if there are as many as there may be.
    fn make_room(&mut self) {
        self.open.retain(|(task, _)| !task.is_finished());
        if self.open.len() < MOST_CONNECTIONS {
            return;
        }
        let quietest = self.open.iter().enumerate();
        let quietest = quietest.min_by_key(|(_, (_, activity))| activity.last());
        if let Some((position, _)) = quietest {
            let (task, _) = self.open.swap_remove(position);
            task.abort();
        }
    }

    async fn finish(mut self) {
        self.stopping.send_replace(true);
        let all = async { while self.tasks.join_next().await.is_some() {} };
        // What has not ended by then is cut when the tasks are dropped.
        drop(timeout(DRAIN_TIME, all).await);
    }
}
