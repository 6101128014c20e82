//! A real Redis or Valkey on a free port.

use crate::deadline::EVENT_TIMEOUT;
use crate::ports::free_port;
use rustix::process::{Pid, Signal, kill_process};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A server without persistence, which ends on drop.
#[derive(Debug)]
pub struct RedisServer {
    port: u16,
    process: Child,
}

/// The programs of the two servers.
const PROGRAMS: [&str; 2] = ["redis-server", "valkey-server"];

impl RedisServer {
    /// Starts a server, and waits until it takes connections.
    ///
    /// # Panics
    /// No server is installed; `cargo xtask setup` does that.
    #[must_use]
    #[track_caller]
    pub fn start() -> Self {
        let port = free_port();
        Self {
            port,
            process: spawn(port),
        }
    }

    /// The URL of the server.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// The address of the server.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    /// Ends the server.
    pub fn stop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }

    /// Restarts the server, at the same address and without its former keys.
    #[track_caller]
    pub fn start_again(&mut self) {
        self.process = spawn(self.port);
    }

    /// Runs a command that is answered by `OK`.
    ///
    /// # Panics
    /// It is answered otherwise.
    #[track_caller]
    pub fn run(&self, command: &str) {
        let stream = TcpStream::connect(("127.0.0.1", self.port));
        let mut stream = stream.expect("the server listens");
        let mut reply = [0; 5];
        let asked = stream.write_all(format!("{command}\r\n").as_bytes());
        let answered = asked.and_then(|()| stream.read_exact(&mut reply));
        assert!(answered.is_ok() && &reply == b"+OK\r\n", "{reply:?}");
    }

    /// Stops the process without closing its connections.
    pub fn pause(&self) {
        self.signal(Signal::STOP);
    }

    /// Resumes the process.
    pub fn resume(&self) {
        self.signal(Signal::CONT);
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.process.id())
            .ok()
            .and_then(Pid::from_raw);
        let sent = id.map(|id| kill_process(id, signal));
        assert!(matches!(sent, Some(Ok(()))), "the server runs");
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a server does not report when it listens"
)]
#[track_caller]
fn spawn(port: u16) -> Child {
    let spawn = |program: &&str| {
        Command::new(program)
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1"])
            .args(["--save", "", "--appendonly", "no"])
            .current_dir(std::env::temp_dir())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()
    };
    let process = PROGRAMS.iter().find_map(spawn);
    let process = process.expect("a server is installed by `cargo xtask setup`");
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(begun.elapsed() < EVENT_TIMEOUT, "the server starts");
        std::thread::sleep(Duration::from_millis(5));
    }
    process
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        self.stop();
    }
}
