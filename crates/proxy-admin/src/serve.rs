//! Listening sockets of the admin interface, and their connections.

use crate::access::Access;
use crate::connection;
use crate::connection::activity::{Activity, Events};
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

/// Maximum number of connections of a socket. At the maximum, a new connection closes the one that
/// has been idle for longest, so that idle clients cannot block access.
const MAX_CONNECTIONS: usize = 32;

/// Delay after a failed accept, for example with too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Maximum time for current requests after the socket is closed.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A bound socket of the admin interface.
#[derive(Debug)]
pub enum Listener {
    /// TCP socket.
    Tcp(std::net::TcpListener),
    /// Unix socket.
    Unix(std::os::unix::net::UnixListener),
}

/// Serves requests at `listener` until `stop` completes, then finishes current requests.
///
/// A socket holds at most 32 connections. A request's head is limited to 8 KiB and 30 seconds.
/// Never blocks for long, so that other tasks may share the thread.
///
/// # Errors
/// Registering the socket with the runtime failed; nothing was served.
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

/// Returns true if only the connection failed, not the socket.
fn is_over(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionReset, Interrupted};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionReset | Interrupted
    )
}

/// A [`Listener`] registered with the runtime.
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

/// Open connections of one socket.
#[derive(Debug)]
struct Connections {
    admin: AdminService,
    events: Events,
    stopping: watch::Sender<bool>,
    tasks: JoinSet<()>,
    open: Vec<(AbortHandle, Activity)>,
}

impl Connections {
    fn new(admin: AdminService) -> Self {
        Self {
            admin,
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
        let (admin, seen) = (self.admin.clone(), activity.clone());
        let stopping = self.stopping.subscribe();
        let task = match stream {
            Stream::Tcp(stream) => self
                .tasks
                .spawn(connection::serve(stream, admin, seen, stopping)),
            Stream::Unix(stream) => self
                .tasks
                .spawn(connection::serve(stream, admin, seen, stopping)),
        };
        self.open.push((task, activity));
    }

    /// At the maximum, closes the connection that has been idle for longest.
    fn make_room(&mut self) {
        self.open.retain(|(task, _)| !task.is_finished());
        if self.open.len() < MAX_CONNECTIONS {
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
        // Dropping unfinished tasks closes their connections.
        drop(timeout(DRAIN_TIME, all).await);
    }
}
