//! A receiver of webhooks, and any other server that answers each request by its number.
#![expect(clippy::expect_used, reason = "a test may stop, and says why")]
#![expect(clippy::disallowed_types, reason = "a test waits for its own requests")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A request as it arrived.
#[derive(Clone, Debug, Default)]
pub struct Received {
    /// Request line, such as `POST /hook HTTP/1.1`.
    pub line: String,
    /// The fields, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as text.
    pub body: String,
}

/// A server on loopback. Its thread ends with the process.
#[derive(Debug)]
pub struct Receiver {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Received {
    /// The first field of this name, or nothing.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(own, _)| own == name);
        found.map_or("", |(_, value)| value)
    }

    fn read(stream: &TcpStream) -> Option<Self> {
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let mut received = Self {
            line: line.trim_end().to_owned(),
            ..Self::default()
        };
        loop {
            let mut field = String::new();
            reader.read_line(&mut field).ok()?;
            let Some((name, value)) = field.split_once(':') else {
                break;
            };
            let field = (name.to_lowercase(), value.trim().to_owned());
            received.headers.push(field);
        }
        let length = received.header("content-length").parse().unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        received.body = String::from_utf8_lossy(&body).into_owned();
        Some(received)
    }
}

impl Receiver {
    /// A receiver that answers each request by its number from 0: complete responses with head and
    /// body. `None` leaves the client without a response until its timeout.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn start(answer: impl Fn(usize, &Received) -> Option<String> + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("the listener has an address");
        let received = Arc::<Mutex<Vec<Received>>>::default();
        let kept = Arc::clone(&received);
        thread::spawn(move || {
            let mut silent = Vec::new();
            for stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = Received::read(&stream) else {
                    continue;
                };
                let mut all = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let number = all.len();
                let answer = answer(number, &request);
                all.push(request);
                drop(all);
                match answer {
                    // The client may have given up.
                    Some(answer) => drop((&stream).write_all(answer.as_bytes())),
                    None => silent.push(stream),
                }
            }
        });
        Self { address, received }
    }

    /// A receiver that answers each request with this status line, and no body.
    pub fn answering(status: &'static str) -> Self {
        Self::start(move |_, _| Some(empty(status)))
    }

    /// The address, such as `http://127.0.0.1:4000`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests received until now.
    pub fn received(&self) -> Vec<Received> {
        let all = self.received.lock();
        all.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// An answer without a body, such as `503 Service Unavailable`.
pub fn empty(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}
