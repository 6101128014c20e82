//! A small upstream that runs in the task's own process.

use super::websocket;
use crate::task_error::TaskError;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::net::TcpListener;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

/// What every answer of an upstream is made of.
pub(super) type Answer = Response<BoxBody<Bytes, hyper::Error>>;

/// Unless the query says otherwise.
const DOWNLOAD_BYTES: u64 = 1 << 20;
const SLOW_MS: u64 = 1_000;

/// An upstream that serves until the process ends.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    name: &'static str,
    slow_begun: Arc<AtomicU64>,
}

impl Upstream {
    /// How many slow requests have arrived.
    pub(super) fn slow_begun(&self) -> u64 {
        self.slow_begun.load(Ordering::Relaxed)
    }
}

/// Serves on a thread of its own until the process ends.
pub(super) fn serve(name: &'static str, listener: TcpListener) -> Result<Upstream, TaskError> {
    let upstream = Upstream {
        name,
        slow_begun: Arc::default(),
    };
    let serving = upstream.clone();
    let failed = |source| TaskError::System {
        deed: "start an upstream",
        source,
    };
    listener.set_nonblocking(true).map_err(failed)?;
    thread::Builder::new()
        .name(format!("upstream {name}"))
        .spawn(move || super::block_on(accept(serving, listener)))
        .map_err(failed)?;
    Ok(upstream)
}

async fn accept(upstream: Upstream, listener: TcpListener) -> std::io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        let upstream = upstream.clone();
        let service = service_fn(move |request| answer(upstream.clone(), request));
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(stream), service)
            .with_upgrades();
        tokio::spawn(connection);
    }
}

/// The last segment of the path says what is wanted, so that any route may lead here.
async fn answer(upstream: Upstream, request: Request<Incoming>) -> Result<Answer, hyper::Error> {
    let path = request.uri().path();
    match path.rsplit('/').next().unwrap_or_default() {
        "echo" => Ok(Response::new(request.into_body().boxed())),
        "ws" => Ok(websocket::accept(request)),
        "download" => {
            let left = query_number(&request, "bytes").unwrap_or(DOWNLOAD_BYTES);
            Ok(Response::new(
                Zeros { left }.map_err(|never| match never {}).boxed(),
            ))
        }
        "upload" => {
            let received = count(request.into_body()).await?;
            Ok(text(StatusCode::OK, format!("{received}\n")))
        }
        "slow" => {
            let wait_ms = query_number(&request, "ms").unwrap_or(SLOW_MS);
            upstream.slow_begun.fetch_add(1, Ordering::Relaxed);
            tokio::time::sleep(Duration::from_millis(wait_ms)).await;
            Ok(text(StatusCode::OK, describe(upstream.name, &request)))
        }
        _ => Ok(text(StatusCode::OK, describe(upstream.name, &request))),
    }
}

/// A plain answer.
pub(super) fn text(status: StatusCode, text: String) -> Answer {
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    let mut answer = Response::new(body.boxed());
    *answer.status_mut() = status;
    answer
}

/// Who answers, and the request as it arrived here.
fn describe(name: &str, request: &Request<Incoming>) -> String {
    let mut page = format!("upstream {name}\n{} {}\n", request.method(), request.uri());
    for (header, value) in request.headers() {
        let value = value.to_str().unwrap_or("(not text)");
        page.extend([header.as_str(), ": ", value, "\n"]);
    }
    page
}

fn query_number(request: &Request<Incoming>, key: &str) -> Option<u64> {
    let pairs = request.uri().query()?.split('&');
    let mut values = pairs.filter_map(|pair| pair.strip_prefix(key)?.strip_prefix('='));
    values.next()?.parse().ok()
}

async fn count(mut body: Incoming) -> Result<u64, hyper::Error> {
    let mut received = 0;
    while let Some(frame) = body.frame().await {
        let length = frame?.data_ref().map_or(0, Bytes::len);
        received += u64::try_from(length).unwrap_or(u64::MAX);
    }
    Ok(received)
}

/// A body of this many zero bytes, none of which is kept.
struct Zeros {
    left: u64,
}

static CHUNK: [u8; 64 * 1024] = [0; 64 * 1024];

impl Body for Zeros {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let chunk = Bytes::from_static(CHUNK.get(..most).unwrap_or(&CHUNK));
        if chunk.is_empty() {
            return Poll::Ready(None);
        }
        self.left -= u64::try_from(chunk.len()).unwrap_or(self.left);
        Poll::Ready(Some(Ok(Frame::data(chunk))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{addresses, curl};

    fn started(name: &'static str) -> String {
        let [listener] = addresses::free().unwrap();
        let address = listener.local_addr().unwrap();
        serve(name, listener).unwrap();
        format!("http://{address}")
    }

    #[test]
    fn an_upstream_says_who_it_is_and_what_it_saw() {
        let url = started("one");

        let answer = curl::get(&format!("{url}/one?a=b"), &["-H", "X-Seen: yes"]).unwrap();
        assert_eq!(answer.status, 200);
        assert!(answer.body.starts_with("upstream one\nGET /one?a=b\n"));
        assert!(answer.body.contains("x-seen: yes\n"));
    }

    #[test]
    fn a_body_comes_back_from_echo_and_is_counted_by_upload() {
        let url = started("one");

        let echoed = curl::get(&format!("{url}/one/echo"), &["-d", "hello"]).unwrap();
        assert_eq!(echoed.body, "hello");
        let counted = curl::get(&format!("{url}/upload"), &["-d", "hello"]).unwrap();
        assert_eq!(counted.body, "5\n");
    }

    #[test]
    fn a_download_has_exactly_the_bytes_asked_for() {
        let url = started("one");

        let answer = curl::get(&format!("{url}/download?bytes=100001"), &[]).unwrap();
        assert_eq!(answer.body.len(), 100_001);
        assert_eq!(answer.header("content-length"), Some("100001"));
        let nothing = curl::get(&format!("{url}/download?bytes=0"), &[]).unwrap();
        assert_eq!(nothing.body, "");
    }

    #[test]
    fn a_slow_answer_still_comes() {
        let url = started("two");

        let answer = curl::get(&format!("{url}/two/slow?ms=1"), &[]).unwrap();
        assert!(answer.body.starts_with("upstream two\n"));
    }
}
