//! The accept loop, and graceful shutdown.

use crate::agent::Agent;
use crate::connection;
use crate::socket::AgentSocket;
use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// Grace period for current requests after SIGTERM.
const DRAIN_TIME: Duration = Duration::from_secs(10);
/// Pause after a failed accept, such as for lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Serves the agent at a socket until SIGTERM or SIGINT. Then it signals the proxy to send no
/// further requests, and decides the current ones.
///
/// # Errors
/// The socket cannot be made.
pub async fn run<A: Agent>(agent: A, path: impl AsRef<Path>) -> io::Result<()> {
    let mut term = signal(SignalKind::terminate())?;
    let mut int = signal(SignalKind::interrupt())?;
    let end = async move {
        tokio::select! {
            _ = term.recv() => (),
            _ = int.recv() => (),
        }
    };
    serve(agent, path, end).await
}

/// As [`run`], until `end` is ready.
///
/// # Errors
/// The socket cannot be made.
pub async fn serve<A: Agent>(
    agent: A,
    path: impl AsRef<Path>,
    end: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let socket = AgentSocket::bind(path.as_ref()).await?;
    let agent = Arc::new(agent);
    let (drain, drained) = watch::channel(false);
    let mut connections = JoinSet::new();
    tokio::pin!(end);
    loop {
        tokio::select! {
            accepted = socket.listener.accept() => match accepted {
                Ok((stream, _)) => {
                    let agent = Arc::clone(&agent);
                    connections.spawn(connection::serve(agent, stream, drained.clone()));
                }
                Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
            },
            Some(_) = connections.join_next() => (),
            () = &mut end => break,
        }
    }
    drop(socket);
    drain.send_replace(true);
    let ended = async { while connections.join_next().await.is_some() {} };
    // Requests that take longer are cut, as their timeouts would have cut them.
    timeout(DRAIN_TIME, ended).await.unwrap_or_default();
    Ok(())
}
