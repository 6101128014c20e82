//! Client with requests that the failing targets should not affect.

use proxy_load::clock::Stopwatch;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// Number of simultaneous connections.
const CONNECTIONS: u32 = 4;
/// Number of successive requests per connection.
const REQUESTS: u32 = 500;
/// Time without data after which a request has failed.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);
/// Pause between two requests of a connection.
const PAUSE: Duration = Duration::from_millis(2);

/// Results of the requests.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) asked: u32,
    /// Number of failed requests: without a response, or with a status other than 200.
    pub(crate) bad: u32,
    /// Durations of all requests, sorted.
    pub(crate) times: Vec<Duration>,
}

/// Sends all requests.
pub(crate) fn ask(port: u16, path: &str) -> Outcome {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n");
    let each: Vec<(u32, Vec<Duration>)> = thread::scope(|scope| {
        let threads = (0..CONNECTIONS).map(|_| scope.spawn(|| connection(port, &request)));
        let threads: Vec<_> = threads.collect();
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended.map(Result::unwrap_or_default).collect()
    });
    let mut times: Vec<Duration> = each.iter().flat_map(|(_, times)| times.clone()).collect();
    times.sort_unstable();
    Outcome {
        asked: CONNECTIONS * REQUESTS,
        bad: CONNECTIONS * REQUESTS - each.iter().map(|(good, _)| good).sum::<u32>(),
        times,
    }
}

/// Sends the requests of one connection. Returns the number of successful ones, and all durations.
fn connection(port: u16, request: &str) -> (u32, Vec<Duration>) {
    let mut stream = None;
    let mut good = 0;
    let mut times = Vec::new();
    for _ in 0..REQUESTS {
        let watch = Stopwatch::start();
        match answer(&mut stream, port, request) {
            Ok(200) => good += 1,
            Ok(_) | Err(_) => stream = None,
        }
        times.push(watch.elapsed());
        proxy_load::clock::pause(PAUSE);
    }
    (good, times)
}

/// Sends one request, and opens the connection if there is none. Returns the status of the
/// response.
fn answer(stream: &mut Option<TcpStream>, port: u16, request: &str) -> io::Result<u16> {
    let open = stream.take();
    let mut open = open.map_or_else(|| connect(port), Ok)?;
    let status = exchange(&mut open, request)?;
    *stream = Some(open);
    Ok(status)
}

fn connect(port: u16) -> io::Result<TcpStream> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stream = TcpStream::connect_timeout(&address, REQUEST_TIMEOUT)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(REQUEST_TIMEOUT))?;
    Ok(stream)
}

fn exchange(stream: &mut TcpStream, request: &str) -> io::Result<u16> {
    stream.write_all(request.as_bytes())?;
    let mut read = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk)?;
        read.extend_from_slice(chunk.get(..count).unwrap_or_default());
        let text = String::from_utf8_lossy(&read);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
            let status = status.ok_or(ErrorKind::InvalidData)?;
            if status != 200 || body.len() >= super::targets::BODY.len() {
                return Ok(status);
            }
        }
        if count == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
    }
}
