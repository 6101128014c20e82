//! Service of one connection, from accept to close.

pub(crate) mod activity;
pub(crate) mod gate;
pub(crate) mod refusal;

use crate::connection::activity::Activity;
use crate::connection::gate::Gate;
use crate::connection::refusal::{close, framing_problem, refuse};
use crate::service::AdminService;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use proxy_errors::{Detail, Problem, Reason};
use std::convert::Infallible;
use std::pin::Pin;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;

/// Maximum time for receiving a head, and between two requests.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// Maximum time for sending the last bytes.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

/// Size of hyper's read and write buffers, in bytes.
const BUFFER_BYTES: usize = 16 * 1024;

/// Serves requests on `stream` until it closes. If `stopping` becomes true, only the current
/// request is completed.
pub(crate) async fn serve<S>(
    stream: S,
    admin: AdminService,
    activity: Activity,
    mut stopping: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(|request| {
        let admin = admin.clone();
        async move { Ok::<_, Infallible>(admin.answer(request).await) }
    });
    let io = TokioIo::new(Gate::new(stream, activity));
    let mut http = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(READ_TIMEOUT)
        .max_buf_size(BUFFER_BYTES)
        .half_close(true)
        .serve_connection(io, service);
    let ended = tokio::select! {
        ended = &mut http => Some(ended),
        () = stop_signal(&mut stopping) => None,
    };
    let ended = if let Some(ended) = ended {
        ended
    } else {
        Pin::new(&mut http).graceful_shutdown();
        (&mut http).await
    };
    let gate = http.into_parts().io.into_inner();
    let too_slow = ended.is_err_and(|error| error.is_timeout()) && gate.in_head();
    let problem = match gate.fault() {
        Some(fault) => Some(framing_problem(fault)),
        None => too_slow
            .then(|| Problem::new(Reason::RequestHeaderTimeout, Detail::After(READ_TIMEOUT))),
    };
    let id = gate.correlation_id().map(<[u8]>::to_vec);
    let stream = gate.into_stream();
    match problem {
        Some(problem) => refuse(stream, &problem, id.as_deref()).await,
        None => drop(timeout(CLOSE_TIMEOUT, close(stream)).await),
    }
}

async fn stop_signal(stopping: &mut watch::Receiver<bool>) {
    drop(stopping.wait_for(|stopping| *stopping).await);
}
