//! A steady load from a thread of this process, for tests of reloads and drains.

use crate::clock::{Stopwatch, pause};
use crate::command::{LoadProfile, Pacing, ResponseSize, Span};
use crate::generator::LoadGenerator;
use crate::generator::progress::{Progress, SteadyOutcome};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Maximum time of a load.
const MAX_DURATION: Duration = Duration::from_mins(2);
/// Interval of polling the number of responses.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The requests of a steady load.
#[derive(Clone, Debug)]
pub struct SteadyLoad {
    /// The proxy's address, on loopback.
    pub address: SocketAddr,
    /// The path of every request. Any response with status 200 and `Content-Length` is valid.
    pub path: String,
    /// Keep-alive connections of HTTP/1.1.
    pub connections: u32,
    /// Requests per second over all connections.
    pub per_second: u32,
}

/// A load that runs until it is stopped, for at most two minutes.
#[derive(Debug)]
pub struct RunningLoad {
    thread: JoinHandle<io::Result<SteadyOutcome>>,
    progress: Arc<Progress>,
}

impl SteadyLoad {
    /// Starts the clients on a thread of their own.
    ///
    /// # Errors
    /// The thread cannot be started.
    pub fn start(self) -> io::Result<RunningLoad> {
        let progress = Arc::new(Progress::default());
        let shared = Arc::clone(&progress);
        let profile = self.profile();
        let thread = thread::Builder::new()
            .name("steady load".to_owned())
            .spawn(move || LoadGenerator::new(0)?.run_until_stopped(&profile, &shared))?;
        Ok(RunningLoad { thread, progress })
    }

    fn profile(&self) -> LoadProfile {
        let paths = vec![self.path.clone()];
        LoadProfile {
            connections: self.connections,
            pacing: Pacing::PerSecond(self.per_second),
            span: Span::Time(MAX_DURATION),
            spin: false,
            may_close: true,
            ..LoadProfile::get(self.address.port(), paths, ResponseSize::Any)
        }
    }
}

impl RunningLoad {
    /// Number of requests answered.
    #[must_use]
    pub fn answered(&self) -> u64 {
        self.progress.answered.load(Ordering::Relaxed)
    }

    /// Waits until this many further requests are answered; false if that takes longer than
    /// `timeout`.
    #[must_use]
    pub fn wait_for(&self, more: u64, timeout: Duration) -> bool {
        let until = self.answered() + more;
        let watch = Stopwatch::start();
        while self.answered() < until {
            if watch.elapsed() > timeout || self.thread.is_finished() {
                return false;
            }
            pause(POLL_INTERVAL);
        }
        true
    }

    /// Waits for the requests in flight and returns the result.
    ///
    /// # Errors
    /// A socket could not be created, or requests were not answered.
    pub fn stop(self) -> io::Result<SteadyOutcome> {
        self.progress.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| Err(io::Error::other("the load's thread panicked")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    const PATIENCE: Duration = Duration::from_secs(20);
    const SOUND: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

    /// The result of one client of a server that sends these responses, one per request, closes the
    /// connection, and accepts no other.
    fn seen(answers: &'static [&'static str]) -> SteadyOutcome {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            // The port stays bound, and refuses connections.
            rustix::net::shutdown(&listener, rustix::net::Shutdown::Both).unwrap();
            for answer in answers {
                read_head(&mut stream);
                stream.write_all(answer.as_bytes()).unwrap();
            }
            drop(stream);
            listener
        });
        let load = SteadyLoad {
            address,
            path: "/".to_owned(),
            connections: 1,
            per_second: 1_000,
        };
        let running = load.start().unwrap();
        let _listener = server.join().unwrap();
        let watch = Stopwatch::start();
        while !running.thread.is_finished() && watch.elapsed() < PATIENCE {
            pause(POLL_INTERVAL);
        }
        running.stop().unwrap()
    }

    fn read_head(stream: &mut TcpStream) {
        let mut head = Vec::new();
        let mut byte = [0];
        while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
            head.extend(byte);
        }
    }

    #[test]
    fn a_connection_closed_between_requests_is_not_a_failure() {
        let outcome = seen(&[SOUND, SOUND]);
        assert_eq!(
            (outcome.answered, outcome.refused, outcome.failed),
            (2, 1, 0)
        );
    }

    #[test]
    fn a_connection_closed_before_its_first_answer_counts_as_refused() {
        let outcome = seen(&[""]);
        assert_eq!(
            (outcome.answered, outcome.refused, outcome.failed),
            (0, 2, 0)
        );
    }

    #[test]
    fn a_body_cut_short_and_another_status_are_failures() {
        const CUT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nok";
        const OTHER: &str = "HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n";
        const CASES: &[&[&str]] = &[&[CUT], &[SOUND, CUT], &[OTHER]];
        for answers in CASES {
            let outcome = seen(answers);
            assert_eq!((outcome.refused, outcome.failed), (1, 1), "{answers:?}");
        }
    }

    #[test]
    fn a_load_runs_until_it_is_stopped() {
        let (sender, addresses) = std::sync::mpsc::channel();
        let serving = thread::spawn(move || {
            let mut upstream = LoadGenerator::new(0)?;
            sender
                .send(upstream.backend_address()?)
                .map_err(io::Error::other)?;
            upstream.respond(Duration::from_secs(2))
        });
        let address = addresses.recv().unwrap();
        let load = SteadyLoad {
            address,
            path: "/m".to_owned(),
            connections: 4,
            per_second: 1_000,
        };
        let running = load.start().unwrap();
        assert!(running.wait_for(100, PATIENCE));
        let outcome = running.stop().unwrap();
        assert!(outcome.answered >= 100);
        assert_eq!(
            (outcome.refused, outcome.failed, outcome.failure),
            (0, 0, None)
        );
        serving.join().unwrap().unwrap();
    }
}
