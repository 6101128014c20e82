//! Opens a connection to a target.

use crate::fault::ConnectFault;
use crate::limit::ConnectionLimit;
use crate::secure::Secure;
use crate::transport::Transport;
use proxy_clock::{Deadline, Timer, Timers};
use proxy_tls::ClientTls;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;

/// How a target is called.
#[derive(Clone, Debug)]
pub struct ConnectSettings {
    /// Time for TCP and TLS together, over all addresses.
    pub timeout: Duration,
    /// With TLS, and the name its certificate must carry. None is plaintext.
    pub tls: Option<(Arc<ClientTls>, ServerName<'static>)>,
    /// Connections there may be at once over all workers. None: no limit.
    pub limit: Option<Arc<ConnectionLimit>>,
}

/// Connects to the first of `addresses` that answers.
///
/// # Errors
/// [`ConnectFault`]; that of the last address when all were tried.
pub async fn connect(
    addresses: &[SocketAddr],
    settings: &ConnectSettings,
    timers: &Timers,
) -> Result<Transport, ConnectFault> {
    timers.start(Timer::UpstreamConnect, settings.timeout);
    let connected = expiring(timers.deadline(), attempt(addresses, settings)).await;
    timers.stop();
    connected?
}

async fn attempt(
    addresses: &[SocketAddr],
    settings: &ConnectSettings,
) -> Result<Transport, ConnectFault> {
    let mut last = ConnectFault::NoAddress;
    for address in addresses {
        match attempt_one(*address, settings).await {
            Ok(transport) => return Ok(transport),
            Err(fault) => last = fault,
        }
    }
    Err(last)
}

async fn attempt_one(
    address: SocketAddr,
    settings: &ConnectSettings,
) -> Result<Transport, ConnectFault> {
    let stream = TcpStream::connect(address)
        .await
        .map_err(ConnectFault::Io)?;
    stream.set_nodelay(true).map_err(ConnectFault::Io)?;
    let Some((tls, name)) = &settings.tls else {
        return Ok(Transport::Tcp(stream));
    };
    // Asked for with each connection: its files may have changed since the last one.
    let stream = TlsConnector::from(tls.config())
        .connect(name.clone(), stream)
        .await
        .map_err(ConnectFault::Tls)?;
    Ok(Transport::Tls(Box::new(Secure(stream))))
}

/// `future`, unless the deadline passes first.
async fn expiring<T>(
    deadline: &Deadline,
    future: impl Future<Output = T>,
) -> Result<T, ConnectFault> {
    let mut future = pin!(future);
    poll_fn(|cx| {
        if let Poll::Ready(done) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(done));
        }
        match deadline.take_expired() {
            Some((timer, after)) => Poll::Ready(Err(ConnectFault::TimedOut { timer, after })),
            None => Poll::Pending,
        }
    })
    .await
}
