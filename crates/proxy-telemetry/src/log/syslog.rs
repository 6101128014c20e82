//! Messages to a syslog server, one for each line of a log.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

/// The facility `daemon`, times eight. [RFC 5424 §6.2.1]
const DAEMON: u8 = 3 << 3;
/// Severity of records without a level, and of `INFO`.
const INFORMATIONAL: u8 = 6;
/// Beginnings of records with another severity.
const SEVERITIES: [(&[u8], u8); 3] = [
    (b"{\"level\":\"ERROR\"", 3),
    (b"{\"level\":\"WARN\"", 4),
    (b"{\"level\":\"DEBUG\"", 7),
];

/// The socket of a syslog server. Messages have no time: the server adds the time of their arrival.
#[derive(Debug)]
pub(crate) enum Syslog {
    /// A local socket, which gets the form of the function `syslog` of the C library.
    Local(UnixDatagram, PathBuf),
    /// A server by UDP, which gets the form of RFC 5424.
    Remote(UdpSocket),
}

impl Syslog {
    /// Connects to the local socket at `path`.
    pub(crate) fn local(path: PathBuf) -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(&path)?;
        Ok(Self::Local(socket, path))
    }

    /// Prepares a socket for messages to `server`; nothing is sent.
    pub(crate) fn remote(server: SocketAddr) -> io::Result<Self> {
        let own: SocketAddr = if server.is_ipv4() {
            (Ipv4Addr::UNSPECIFIED, 0).into()
        } else {
            (Ipv6Addr::UNSPECIFIED, 0).into()
        };
        let socket = UdpSocket::bind(own)?;
        socket.connect(server)?;
        Ok(Self::Remote(socket))
    }

    fn send(&mut self, line: &[u8]) -> io::Result<()> {
        let level = SEVERITIES.iter().find(|(start, _)| line.starts_with(start));
        let priority = DAEMON + level.map_or(INFORMATIONAL, |(_, severity)| *severity);
        let process = std::process::id();
        match self {
            Self::Remote(socket) => {
                let head = format!("<{priority}>1 - - proxyd {process} - - ");
                socket.send(&message(&head, line))?;
            }
            Self::Local(socket, path) => {
                let text = message(&format!("<{priority}>proxyd[{process}]: "), line);
                if socket.send(&text).is_err() {
                    // The server was restarted, and its socket is another one.
                    socket.connect(&*path)?;
                    socket.send(&text)?;
                }
            }
        }
        Ok(())
    }
}

impl Write for Syslog {
    /// Sends the first line of `bytes`.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let (line, taken) = match end {
            Some(end) => (bytes.get(..end).unwrap_or_default(), end + 1),
            None => (bytes, bytes.len()),
        };
        if !line.is_empty() {
            self.send(line)?;
        }
        Ok(taken)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn message(head: &str, line: &[u8]) -> Vec<u8> {
    [head.as_bytes(), line].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn received(socket: &UnixDatagram) -> String {
        let mut buffer = [0; 256];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    #[test]
    fn each_line_is_a_message_with_its_severity() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("log");
        let server = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::local(path).unwrap();
        syslog
            .write_all(b"{\"status\":200}\n{\"level\":\"WARN\"}\n")
            .unwrap();
        let process = std::process::id();
        let expected = [
            format!("<30>proxyd[{process}]: {{\"status\":200}}"),
            format!("<28>proxyd[{process}]: {{\"level\":\"WARN\"}}"),
        ];
        assert_eq!([received(&server), received(&server)], expected);
    }

    #[test]
    fn a_restarted_server_gets_the_next_message() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("log");
        let server = UnixDatagram::bind(&path).unwrap();
        let mut syslog = Syslog::local(path.clone()).unwrap();
        drop(server);
        std::fs::remove_file(&path).unwrap();
        syslog.write_all(b"lost\n").unwrap_err();
        let server = UnixDatagram::bind(&path).unwrap();
        syslog.write_all(b"arrives\n").unwrap();
        assert!(received(&server).ends_with("]: arrives"));
    }

    #[test]
    fn a_remote_server_gets_the_form_of_its_rfc() {
        let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut syslog = Syslog::remote(server.local_addr().unwrap()).unwrap();
        syslog.write_all(b"one\n").unwrap();
        let mut buffer = [0; 256];
        let length = server.recv(&mut buffer).unwrap();
        let text = String::from_utf8(buffer[..length].to_vec()).unwrap();
        let process = std::process::id();
        assert_eq!(text, format!("<30>1 - - proxyd {process} - - one"));
    }
}
