//! A steady load of keep-alive clients that count what fails, as a browser would see it.

use crate::clock::Stopwatch;
use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONNECTION, HOST};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// A load ends by itself after this time, whether or not anyone stops it.
const LONGEST: Duration = Duration::from_mins(2);

/// What to ask, of whom, how often.
#[derive(Clone, Debug)]
pub(super) struct Load {
    /// The proxy.
    pub(super) to: SocketAddr,
    /// The path that every request asks for.
    pub(super) path: &'static str,
    /// How many clients ask at once, each over its own connection.
    pub(super) clients: usize,
    /// How long a client rests between two requests.
    pub(super) rest: Duration,
}

/// A load that runs until it is stopped.
pub(super) struct Running {
    clients: JoinSet<Outcome>,
    shared: Arc<Shared>,
}

/// What the clients saw.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// Requests answered with 200 and a whole body.
    pub(super) answered: u64,
    /// Connections refused, before any request was made on them; each ended its client.
    pub(super) refused: u64,
    /// Every other end of a request, in words.
    pub(super) failures: Vec<String>,
}

#[derive(Debug)]
struct Shared {
    since: Stopwatch,
    stop: AtomicBool,
    answered: AtomicU64,
}

impl Shared {
    fn is_wanted(&self) -> bool {
        !self.stop.load(Ordering::Relaxed) && self.since.elapsed() < LONGEST
    }
}

/// How one request ended.
enum Ending {
    /// Answered; the connection may be used again.
    Kept,
    /// Answered; the proxy said that it would close the connection.
    Closing,
    /// The connection was closed between requests: not a failure, the request goes on a new one.
    Unsent,
}

impl Load {
    /// Starts the clients on this runtime.
    pub(super) fn start(self) -> Running {
        let shared = Arc::new(Shared {
            since: Stopwatch::start(),
            stop: AtomicBool::new(false),
            answered: AtomicU64::new(0),
        });
        let mut clients = JoinSet::new();
        for _ in 0..self.clients {
            clients.spawn(client(self.clone(), Arc::clone(&shared)));
        }
        Running { clients, shared }
    }
}

impl Running {
    /// Requests answered until now.
    pub(super) fn answered(&self) -> u64 {
        self.shared.answered.load(Ordering::Relaxed)
    }

    /// Lets every client finish its request, and sums up.
    pub(super) async fn stop(self) -> Outcome {
        self.shared.stop.store(true, Ordering::Relaxed);
        let mut whole = Outcome::default();
        for seen in self.clients.join_all().await {
            let Outcome {
                answered,
                refused,
                failures,
            } = seen;
            whole.answered += answered;
            whole.refused += refused;
            whole.failures.extend(failures);
        }
        whole
    }
}

async fn client(load: Load, shared: Arc<Shared>) -> Outcome {
    let mut outcome = Outcome::default();
    while shared.is_wanted() {
        match connect(load.to).await {
            Ok(connection) => use_up(&load, &shared, connection, &mut outcome).await,
            Err(cause) if cause.kind() == io::ErrorKind::ConnectionRefused => {
                outcome.refused += 1;
                break;
            }
            Err(cause) => {
                outcome.failures.push(format!("connecting: {cause}"));
                break;
            }
        }
    }
    outcome
}

/// Asks again and again over one connection, until it or the load ends.
async fn use_up(
    load: &Load,
    shared: &Shared,
    mut connection: SendRequest<Empty<Bytes>>,
    outcome: &mut Outcome,
) {
    let mut used = false;
    while shared.is_wanted() {
        match ask(load, &mut connection, used).await {
            Ok(Ending::Unsent) => return,
            Ok(ending) => {
                outcome.answered += 1;
                shared.answered.fetch_add(1, Ordering::Relaxed);
                if matches!(ending, Ending::Closing) {
                    return;
                }
            }
            Err(failure) => {
                outcome.failures.push(failure);
                return;
            }
        }
        used = true;
        tokio::time::sleep(load.rest).await;
    }
}

async fn connect(to: SocketAddr) -> io::Result<SendRequest<Empty<Bytes>>> {
    let stream = TcpStream::connect(to).await?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream))
        .await
        .map_err(io::Error::other)?;
    // Its end shows at the sender.
    tokio::spawn(connection);
    Ok(sender)
}

async fn ask(
    load: &Load,
    connection: &mut SendRequest<Empty<Bytes>>,
    used: bool,
) -> Result<Ending, String> {
    let request = Request::get(load.path).header(HOST, load.to.to_string());
    let request = request
        .body(Empty::new())
        .map_err(|cause| cause.to_string())?;
    // RFC 9112 §9.3.1: a server may close an idle connection, and a client may ask again.
    let between_requests = |cause: &hyper::Error| {
        used && (cause.is_closed() || cause.is_canceled() || cause.is_incomplete_message())
    };
    let answer = match connection.send_request(request).await {
        Ok(answer) => answer,
        Err(cause) if between_requests(&cause) => return Ok(Ending::Unsent),
        Err(cause) => return Err(format!("asking: {}", chain(&cause))),
    };
    if answer.status() != StatusCode::OK {
        return Err(format!("status {}", answer.status()));
    }
    let ending = if says_close(&answer) {
        Ending::Closing
    } else {
        Ending::Kept
    };
    match answer.into_body().collect().await {
        Ok(_) => Ok(ending),
        Err(cause) => Err(format!("reading the body: {}", chain(&cause))),
    }
}

fn says_close<T>(answer: &Response<T>) -> bool {
    let connection = answer.headers().get(CONNECTION);
    connection.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"close"))
}

fn chain(error: &hyper::Error) -> String {
    std::error::Error::source(error)
        .map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::{addresses, block_on, upstream};
    use std::os::fd::AsFd;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn load(to: SocketAddr) -> Load {
        Load {
            to,
            path: "/",
            clients: 4,
            rest: Duration::ZERO,
        }
    }

    #[test]
    fn a_sound_server_answers_every_request() {
        let [listener] = addresses::free().unwrap();
        let to = listener.local_addr().unwrap();
        upstream::serve("one", listener).unwrap();

        let outcome = block_on(async {
            let running = load(to).start();
            while running.answered() < 100 {
                tokio::task::yield_now().await;
            }
            running.stop().await
        });
        let outcome = outcome.unwrap();
        assert!(outcome.answered >= 100);
        assert_eq!(outcome.failures, [""; 0]);
        assert_eq!(outcome.refused, 0);
    }

    /// Refuses all further connections, but keeps the port from everybody else.
    fn refuse(listener: &impl AsFd) {
        rustix::net::shutdown(listener, rustix::net::Shutdown::Both).unwrap();
    }

    #[test]
    fn a_refused_connection_is_counted_apart_from_failures() {
        let [listener] = addresses::free().unwrap();
        refuse(&listener);
        let to = listener.local_addr().unwrap();

        let outcome = block_on(async { load(to).start().clients.join_all().await }).unwrap();
        assert_eq!(outcome.len(), 4);
        for seen in outcome {
            assert_eq!((seen.answered, seen.refused), (0, 1));
            assert_eq!(seen.failures, [""; 0]);
        }
    }

    /// Answers the requests of one client, one each, then closes and refuses.
    async fn play(listener: &tokio::net::TcpListener, answers: &[&str]) {
        let (mut stream, _) = listener.accept().await.unwrap();
        refuse(listener);
        let mut request = [0; 1024];
        for answer in answers {
            assert!(stream.read(&mut request).await.unwrap() > 0);
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    }

    fn played(answers: &[&str]) -> Outcome {
        let [listener] = addresses::free().unwrap();
        let one = Load {
            clients: 1,
            ..load(listener.local_addr().unwrap())
        };
        listener.set_nonblocking(true).unwrap();
        block_on(async {
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            let mut running = one.start();
            play(&listener, answers).await;
            running.clients.join_next().await.unwrap().unwrap()
        })
        .unwrap()
    }

    #[test]
    fn a_connection_closed_between_requests_is_no_failure() {
        let outcome = played(&["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"]);

        assert_eq!((outcome.answered, outcome.refused), (1, 1));
        assert_eq!(outcome.failures, [""; 0]);
    }

    #[test]
    fn a_body_cut_short_is_a_failure() {
        let outcome = played(&["HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok"]);

        assert_eq!(outcome.answered, 0);
        assert_eq!(outcome.failures.len(), 1);
    }

    #[test]
    fn another_status_is_a_failure() {
        let outcome = played(&["HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n"]);

        assert_eq!(outcome.failures, ["status 503 Service Unavailable"]);
    }

    #[test]
    fn a_first_request_without_an_answer_is_a_failure() {
        let outcome = played(&[""]);

        assert_eq!(outcome.answered, 0);
        assert_eq!(outcome.failures.len(), 1);
    }
}
