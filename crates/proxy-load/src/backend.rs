//! The upstream: answers every request at once, from memory.

pub(crate) mod capture;
pub(crate) mod request_reader;

use crate::backend::request_reader::{LastRequest, RequestReader};
use crate::clock::http_date;
use crate::command::ResponseSize;
use crate::poller::{Interest, Owner, Poller};
use slab::Slab;
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

/// Length of the accept queue.
const BACKLOG: i32 = 4_096;
/// The byte that response bodies consist of.
pub(crate) const BODY_BYTE: u8 = b'x';

/// The listener, its connections, and their responses.
pub(crate) struct Backend {
    listener: TcpListener,
    connections: Slab<Connection>,
    answers: Answers,
    /// The last request, if it is to be captured.
    pub(crate) seen: Option<LastRequest>,
}

/// Serialized responses, heads and bodies.
struct Answers {
    small: Vec<u8>,
    medium: Vec<u8>,
    large: Vec<u8>,
}

struct Connection {
    socket: TcpStream,
    intake: RequestReader,
    owed: VecDeque<ResponseSize>,
    /// Bytes written of the first pending response.
    written: usize,
    interest: Interest,
}

impl Backend {
    /// Listens on a port of loopback; with 0 the kernel picks one.
    pub(crate) fn listen(port: u16, poller: &Poller) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
        // The standard library sets a shorter queue.
        rustix::net::listen(&listener, BACKLOG)?;
        listener.set_nonblocking(true)?;
        poller.watch(&listener, Owner::Listener)?;
        Ok(Self {
            listener,
            connections: Slab::new(),
            answers: Answers::new(),
            seen: None,
        })
    }

    /// The listener's address.
    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Accepts all waiting connections.
    pub(crate) fn accept(&mut self, poller: &Poller) -> io::Result<()> {
        loop {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(cause) => return Err(cause),
            };
            socket.set_nonblocking(true)?;
            socket.set_nodelay(true)?;
            let entry = self.connections.vacant_entry();
            poller.watch(&socket, Owner::Backend(entry.key()))?;
            entry.insert(Connection {
                socket,
                intake: RequestReader::default(),
                owed: VecDeque::new(),
                written: 0,
                interest: Interest::Read,
            });
        }
    }

    /// Reads from and writes to the connection with this index.
    pub(crate) fn serve(
        &mut self,
        index: usize,
        readable: bool,
        poller: &Poller,
        scratch: &mut [u8],
    ) -> io::Result<()> {
        let Some(connection) = self.connections.get_mut(index) else {
            return Ok(());
        };
        let read = if readable {
            connection.read(scratch, self.seen.as_mut())
        } else {
            Ok(())
        };
        let Ok(interest) = read.and_then(|()| connection.write(&self.answers)) else {
            // The proxy may close a connection between requests. If it closed one too early, its
            // own client misses a response and counts the failure.
            self.connections.remove(index);
            return Ok(());
        };
        if interest == connection.interest {
            return Ok(());
        }
        connection.interest = interest;
        poller.change(&connection.socket, Owner::Backend(index), interest)?;
        Ok(())
    }
}

impl Connection {
    fn read(&mut self, scratch: &mut [u8], seen: Option<&mut LastRequest>) -> io::Result<()> {
        let read = match self.socket.read(scratch) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => read,
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(cause) => return Err(cause),
        };
        let bytes = scratch.get(..read).unwrap_or_default();
        self.intake.take(bytes, &mut self.owed, seen);
        Ok(())
    }

    /// Writes pending responses, as far as the socket accepts them.
    fn write(&mut self, answers: &Answers) -> io::Result<Interest> {
        while let Some(answer) = self.owed.front() {
            let rest = answers.bytes(*answer).get(self.written..);
            let rest = rest.unwrap_or_default();
            match self.socket.write(rest) {
                Ok(written) if written == rest.len() => {
                    self.written = 0;
                    self.owed.pop_front();
                }
                Ok(written) => self.written += written,
                Err(cause) if cause.kind() == ErrorKind::WouldBlock => {
                    return Ok(Interest::ReadAndWrite);
                }
                Err(cause) => return Err(cause),
            }
        }
        Ok(Interest::Read)
    }
}

impl Answers {
    fn new() -> Self {
        Self {
            small: whole(ResponseSize::Small),
            medium: whole(ResponseSize::Medium),
            large: whole(ResponseSize::Large),
        }
    }

    fn bytes(&self, answer: ResponseSize) -> &[u8] {
        match answer {
            ResponseSize::Small | ResponseSize::Any => &self.small,
            ResponseSize::Medium => &self.medium,
            ResponseSize::Large => &self.large,
        }
    }
}

/// A response with typical headers, as old as this process: a cache stores no response from another day.
fn whole(answer: ResponseSize) -> Vec<u8> {
    let length = answer.body_bytes();
    let date = http_date();
    let head = format!(
        "HTTP/1.1 200 OK\r\n\
         Server: upstream\r\n\
         Date: {date}\r\n\
         Content-Type: text/plain\r\n\
         Content-Length: {length}\r\n\r\n"
    );
    let mut bytes = head.into_bytes();
    bytes.resize(bytes.len() + length, BODY_BYTE);
    bytes
}
