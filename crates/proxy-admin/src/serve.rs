//! A listening socket and its connections.

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

/// Maximum number of connections. A further one closes the connection that has been idle for
/// longest, so that idle clients do not block access.
const MAX_CONNECTIONS: usize = 32;

/// Pause after a failed accept, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(200);

/// Maximum time for responses in progress once the socket closes.
const DRAIN_TIME: Duration = Duration::from_secs(2);

/// A listening socket.
#[derive(Debug)]
pub enum Listener {
    /// TCP socket, bound and listening.
    Tcp(std::net::TcpListener),
    /// Unix socket, bound and listening.
    Unix(std::os::unix::net::UnixListener),
}

/// Serves `listener` until `stop` is ready, then drains it.
///
/// At most 32 connections are held; a head has a maximum of 8 KiB and 30 seconds. It does not block
/// for long, so other work may share the thread.
///
/// # Errors
/// The socket cannot be registered with the runtime; returned at once.
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

/// Returns true if the error concerns only the connection to be accepted.
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

/// The connections of one socket.
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

    /// Closes the connection that has been idle for longest if the maximum is reached.
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
        // Tasks still running then are dropped, which closes their connections.
        drop(timeout(DRAIN_TIME, all).await);
    }
}
