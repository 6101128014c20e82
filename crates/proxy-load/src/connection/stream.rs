//! A client's byte stream: TCP, or TLS over TCP.

use crate::command::Protocol;
use crate::connection::trust::{self, HTTP2};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// Constructor of new streams.
pub(crate) struct Connector {
    port: u16,
    tls: Option<Arc<ClientConfig>>,
}

/// A connected socket, with or without TLS. No operation blocks.
pub(crate) struct Stream {
    socket: TcpStream,
    tls: Option<Box<ClientConnection>>,
}

/// The result of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadOutcome {
    /// This many bytes.
    Bytes(usize),
    /// No data for now.
    Nothing,
    /// The end of the stream.
    End,
}

impl Connector {
    /// To a port of loopback.
    pub(crate) fn new(port: u16, protocol: Protocol) -> io::Result<Self> {
        Ok(Self {
            port,
            tls: trust::config(protocol).map_err(io::Error::other)?,
        })
    }

    /// A new connection; its TLS handshake continues with the first writes and reads.
    pub(crate) fn connect(&self) -> io::Result<Stream> {
        let socket = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let tls = self.tls.as_ref().map(|config| {
            let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
            ClientConnection::new(Arc::clone(config), name).map_err(io::Error::other)
        });
        let tls = tls.transpose()?.map(Box::new);
        Ok(Stream { socket, tls })
    }
}

impl Stream {
    /// Returns true if the TLS handshake is complete and did not select HTTP/2.
    pub(crate) fn is_not_http2(&self) -> bool {
        let done = self.tls.as_ref().filter(|tls| !tls.is_handshaking());
        done.is_some_and(|tls| tls.alpn_protocol() != Some(HTTP2))
    }

    /// Sends from the beginning of `out` and removes the sent bytes. True if nothing is left in any
    /// buffer.
    pub(crate) fn send(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let Some(tls) = &mut self.tls else {
            return send_plain(&mut self.socket, out);
        };
        if !out.is_empty() {
            let taken = tls.writer().write(out)?;
            out.drain(..taken);
        }
        Ok(send_records(tls, &mut self.socket)? && out.is_empty())
    }

    /// Reads available data, as much as fits.
    pub(crate) fn receive(&mut self, into: &mut [u8]) -> io::Result<ReadOutcome> {
        let Some(tls) = &mut self.tls else {
            return receipt(self.socket.read(into));
        };
        loop {
            let plain = receipt(tls.reader().read(into))?;
            if plain != ReadOutcome::Nothing {
                return Ok(plain);
            }
            let packed = receipt(tls.read_tls(&mut self.socket))?;
            if matches!(packed, ReadOutcome::Nothing | ReadOutcome::End) {
                return Ok(packed);
            }
            tls.process_new_packets().map_err(io::Error::other)?;
            send_records(tls, &mut self.socket)?;
        }
    }
}

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn send_plain(socket: &mut TcpStream, out: &mut Vec<u8>) -> io::Result<bool> {
    while !out.is_empty() {
        match socket.write(out) {
            Ok(sent) if sent == out.len() => out.clear(),
            Ok(sent) => drop(out.drain(..sent)),
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(cause) => return Err(cause),
        }
    }
    Ok(true)
}

fn send_records(tls: &mut ClientConnection, socket: &mut TcpStream) -> io::Result<bool> {
    while tls.wants_write() {
        match tls.write_tls(socket) {
            Ok(_) => {}
            Err(cause) if cause.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(cause) => return Err(cause),
        }
    }
    Ok(true)
}

fn receipt(read: io::Result<usize>) -> io::Result<ReadOutcome> {
    let cause = match read {
        Ok(0) => return Ok(ReadOutcome::End),
        Ok(read) => return Ok(ReadOutcome::Bytes(read)),
        Err(cause) => cause,
    };
    if cause.kind() == ErrorKind::WouldBlock {
        return Ok(ReadOutcome::Nothing);
    }
    // Closed without `close_notify`, or with a reset after the response.
    let gone = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
    if gone.contains(&cause.kind()) {
        return Ok(ReadOutcome::End);
    }
    Err(cause)
}
