//! One end of a connection, read byte by byte.

use crate::deadline::EVENT_TIMEOUT;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

const PIECE_BYTES: usize = 64 * 1024;

/// The reason why a read or write failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The peer closed its side.
    #[error("the peer closed the connection")]
    Eof,
    /// The peer reset the connection.
    #[error("the connection was reset")]
    Reset,
    /// The deadline passed without data.
    #[error("nothing came in time")]
    Silent,
    /// The data is malformed.
    #[error("malformed: {0}")]
    Malformed(&'static str),
    /// Another I/O error.
    #[error("input or output failed: {0}")]
    Io(ErrorKind),
}

/// The kind of end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By FIN.
    Closed,
    /// By a reset.
    Reset,
}

/// A TCP connection with its unconsumed input.
#[derive(Debug)]
pub struct Wire {
    stream: TcpStream,
    waiting: Vec<u8>,
    taken: Vec<u8>,
}

impl Wire {
    /// For a connected stream.
    pub(crate) fn new(stream: TcpStream) -> Self {
        let result = stream.set_nodelay(true);
        result.expect("a socket takes its options");
        Self::with_timeouts(stream)
    }

    /// For a stream of any socket family.
    pub(crate) fn with_timeouts(stream: TcpStream) -> Self {
        let result = stream
            .set_read_timeout(Some(EVENT_TIMEOUT))
            .and_then(|()| stream.set_write_timeout(Some(EVENT_TIMEOUT)));
        result.expect("a socket takes its options");
        Self {
            stream,
            waiting: Vec::new(),
            taken: Vec::new(),
        }
    }

    /// The local address.
    #[must_use]
    pub fn local(&self) -> SocketAddr {
        self.stream.local_addr().expect("a socket has an address")
    }

    /// The peer's address.
    #[must_use]
    pub fn peer(&self) -> SocketAddr {
        self.stream
            .peer_addr()
            .expect("a connected socket has a peer")
    }

    /// Sets the deadline of each read and write to `time`.
    pub fn set_response_timeout(&self, time: Duration) {
        let result = self.stream.set_read_timeout(Some(time));
        result
            .and_then(|()| self.stream.set_write_timeout(Some(time)))
            .expect("a socket takes its options");
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// [`Broken`] if the peer does not accept them.
    pub fn send(&mut self, bytes: impl AsRef<[u8]>) -> Result<(), Broken> {
        self.stream
            .write_all(bytes.as_ref())
            .map_err(|error| broken(&error))
    }

    /// Writes a part of `bytes` and returns its length.
    ///
    /// # Errors
    /// [`Broken`] if the peer accepts none.
    pub fn send_some(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        self.stream.write(bytes).map_err(|error| broken(&error))
    }

    /// Closes the sending side; the peer may continue.
    pub fn finish(&self) {
        // Fails if the peer has reset the connection, which is closed then.
        drop(self.stream.shutdown(Shutdown::Write));
    }

    /// Resets the connection.
    pub fn reset(&mut self) {
        // Closing is not enough, because other handles may share the socket.
        rustix::net::connect_unspec(&self.stream).expect("a socket can be disconnected");
    }

    /// The next line without its CRLF.
    ///
    /// # Errors
    /// [`Broken`], also for a lone LF or CR.
    pub fn line(&mut self) -> Result<Vec<u8>, Broken> {
        let mut looked_at = 0;
        loop {
            let found = self
                .waiting
                .iter()
                .skip(looked_at)
                .position(|byte| *byte == b'\n');
            let Some(place) = found.map(|place| place + looked_at) else {
                looked_at = self.waiting.len();
                self.fill()?;
                continue;
            };
            let mut line = self.take(place + 1);
            line.pop();
            if line.pop() != Some(b'\r') || line.contains(&b'\r') {
                return Err(Broken::Malformed("a line does not end in CRLF"));
            }
            return Ok(line);
        }
    }

    /// The next `count` bytes.
    ///
    /// # Errors
    /// [`Broken`] if fewer arrive.
    pub fn exactly(&mut self, count: usize) -> Result<Vec<u8>, Broken> {
        while self.waiting.len() < count {
            self.fill()?;
        }
        Ok(self.take(count))
    }

    /// Reads and discards `count` bytes.
    ///
    /// # Errors
    /// [`Broken`] if fewer arrive.
    pub fn discard(&mut self, count: usize) -> Result<(), Broken> {
        let mut left = count;
        while left > 0 {
            if self.waiting.is_empty() {
                self.fill()?;
            }
            let piece = left.min(self.waiting.len());
            self.waiting.drain(..piece);
            left -= piece;
        }
        Ok(())
    }

    /// The next bytes, at least one.
    ///
    /// # Errors
    /// [`Broken`] if none arrives.
    pub fn some(&mut self) -> Result<Vec<u8>, Broken> {
        if self.waiting.is_empty() {
            self.fill()?;
        }
        Ok(self.take(self.waiting.len()))
    }

    /// All bytes until the peer closes its side, and how it closed.
    ///
    /// # Errors
    /// [`Broken`] if the peer neither sends nor closes.
    pub fn rest(&mut self) -> Result<(Vec<u8>, End), Broken> {
        loop {
            match self.fill() {
                Ok(()) => {}
                Err(Broken::Eof) => return Ok((self.take(self.waiting.len()), End::Closed)),
                Err(Broken::Reset) => return Ok((self.take(self.waiting.len()), End::Reset)),
                Err(other) => return Err(other),
            }
        }
    }

    /// Waits for a byte, without consuming it.
    ///
    /// # Errors
    /// [`Broken`] if none arrives.
    pub fn peek(&mut self) -> Result<(), Broken> {
        if self.waiting.is_empty() {
            self.fill()?;
        }
        Ok(())
    }

    /// The bytes consumed since the last call.
    pub(crate) fn verbatim(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.taken)
    }

    /// Another handle for the same connection.
    pub(crate) fn stream(&self) -> TcpStream {
        self.stream.try_clone().expect("a socket can be shared")
    }

    fn fill(&mut self) -> Result<(), Broken> {
        // Not `resize`, which takes a millisecond for this many bytes in an unoptimized build.
        let mut piece = vec![0; PIECE_BYTES];
        let read = loop {
            match self.stream.read(&mut piece) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        match read {
            Ok(0) => Err(Broken::Eof),
            Ok(count) => {
                let piece = piece.get(..count).unwrap_or_default();
                self.waiting.extend_from_slice(piece);
                Ok(())
            }
            Err(error) => Err(broken(&error)),
        }
    }

    fn take(&mut self, count: usize) -> Vec<u8> {
        let rest = self.waiting.split_off(count);
        let taken = std::mem::replace(&mut self.waiting, rest);
        self.taken.extend_from_slice(&taken);
        taken
    }
}

fn broken(error: &io::Error) -> Broken {
    #[expect(clippy::wildcard_enum_match_arm, reason = "io::ErrorKind grows")]
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
            Broken::Reset
        }
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Broken::Silent,
        kind => Broken::Io(kind),
    }
}
