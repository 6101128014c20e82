//! A real S3-compatible server, which keeps objects in its memory.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop, and says why"
)]

use crate::installed::installed;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_mins(1);
const PROGRAM: &str = "moto/bin/moto_server";
const ANNOUNCES: &str = "Running on ";
/// Ends the server as soon as the pipe from the test is closed, even if the test was killed.
const GUARD: &str = r#"
"$@" <&- &
server=$!
cat >/dev/null
kill $server
wait $server
"#;

/// A running server. It ends with the process that started it.
#[derive(Debug)]
pub struct ObjectServer {
    url: String,
    guard: Child,
}

impl ObjectServer {
    /// Starts a server on a free port, and waits until it listens.
    ///
    /// # Panics
    ///
    /// If it is not installed, or does not start in 60 seconds.
    pub fn start() -> Self {
        let mut guard = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(installed(PROGRAM))
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shell starts");
        let log = guard.stderr.take().expect("the stream is piped");
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                // The receiver is dropped once the server is ready; the pipe must still be drained.
                drop(sender.send(line));
            }
        });
        let mut printed = Vec::new();
        while let Ok(line) = lines.recv_timeout(DEADLINE) {
            if let Some((_, url)) = line.split_once(ANNOUNCES) {
                let url = url.trim().to_owned();
                return Self { url, guard };
            }
            printed.push(line);
        }
        drop(guard.kill());
        drop(guard.wait());
        panic!("the object server did not start:\n{}", printed.join("\n"));
    }

    /// `http://127.0.0.1:PORT`
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Makes an empty bucket.
    ///
    /// # Panics
    ///
    /// If the server is gone.
    pub fn create_bucket(&self, name: &str) {
        let address = self.url.strip_prefix("http://").expect("a URL");
        let address: SocketAddr = address.parse().expect("the address is valid");
        let mut stream = TcpStream::connect(address).expect("the server listens");
        let head = format!("PUT /{name} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
        stream
            .write_all(head.as_bytes())
            .expect("the server reads the request");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let status = answer.split(' ').nth(1);
        assert_eq!(status, Some("200"), "{answer}");
    }

    /// The settings that a client needs, under the names that the tools of AWS read.
    pub fn variables() -> [(String, String); 2] {
        [
            ("AWS_ACCESS_KEY_ID".to_owned(), "test".to_owned()),
            ("AWS_SECRET_ACCESS_KEY".to_owned(), "test".to_owned()),
        ]
    }
}

impl Drop for ObjectServer {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}
