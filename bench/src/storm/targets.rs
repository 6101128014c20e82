//! Targets of a storm: one that responds at once, and one that never responds.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::{self, JoinHandle};
use xtask_kit::task_error::TaskError;

/// Body of every response.
pub(crate) const BODY: &str = "well";

/// Target that responds at once.
#[derive(Debug)]
pub(crate) struct WellTarget(#[expect(dead_code, reason = "stopped on drop")] Acceptor);

/// Target that accepts connections and never responds.
#[derive(Debug)]
pub(crate) struct HungTarget {
    held: Arc<AtomicU32>,
    _acceptor: Acceptor,
}

/// Thread that accepts connections until it is dropped.
#[derive(Debug)]
struct Acceptor {
    port: u16,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl WellTarget {
    pub(crate) fn start(port: u16) -> Result<Self, TaskError> {
        let acceptor = Acceptor::start(port, |stream| {
            drop(thread::spawn(move || drop(serve(stream))));
        });
        acceptor.map(Self)
    }
}

impl HungTarget {
    pub(crate) fn start(port: u16) -> Result<Self, TaskError> {
        let held = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&held);
        let mut streams = Vec::new();
        let acceptor = Acceptor::start(port, move |stream| {
            streams.push(stream);
            count.fetch_add(1, Ordering::Relaxed);
        });
        Ok(Self {
            held,
            _acceptor: acceptor?,
        })
    }

    /// Number of accepted connections.
    pub(crate) fn held(&self) -> u32 {
        self.held.load(Ordering::Relaxed)
    }
}

impl Acceptor {
    fn start(
        port: u16,
        mut accepted: impl FnMut(TcpStream) + Send + 'static,
    ) -> Result<Self, TaskError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
        let listener = listener.map_err(|source| TaskError::System {
            action: "start a target",
            source,
        })?;
        let is_over = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&is_over);
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if ends.load(Ordering::Relaxed) {
                    return;
                }
                if let Ok(stream) = stream {
                    accepted(stream);
                }
            }
        });
        Ok(Self {
            port,
            is_over,
            thread: Some(thread),
        })
    }
}

impl Drop for Acceptor {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Wakes the thread, which then closes the listener.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let length = BODY.len();
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{BODY}");
    let mut read = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let count = stream.read(&mut chunk)?;
        if count == 0 {
            return Ok(());
        }
        read.extend_from_slice(chunk.get(..count).unwrap_or_default());
        if read.ends_with(b"\r\n\r\n") {
            read.clear();
            stream.write_all(answer.as_bytes())?;
        }
    }
}
