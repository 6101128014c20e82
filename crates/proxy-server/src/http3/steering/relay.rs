//! Forwarding of datagrams from a new process to the one before it, during an upgrade.
//!
//! Both processes hold the same UDP sockets, and the new one receives from them. It forwards
//! datagrams of the old process's connections through a pair of Unix sockets. The first message
//! takes the other direction: it holds the old process's secrets, with which the new one reads
//! connection IDs.

use super::secrets::{Http3Secrets, SEED_BYTES};
use crate::http3::socket::Datagram;
use bytes::BytesMut;
use quinn_proto::EcnCodepoint;
use socket2::Socket;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;

/// First byte of the greeting.
const VERSION: u8 = 1;

/// Version, number of the process, seed of the secrets.
const GREETING_BYTES: usize = 2 + SEED_BYTES;

/// Endpoint, ECN mark, address and port of the client, address of this host.
const HEADER_BYTES: usize = 2 + 1 + 16 + 2 + 16;

/// Maximum size of a received message, in bytes.
const MAX_MESSAGE_BYTES: usize = 2048;

/// The old process's end of the socket pair.
#[derive(Debug)]
pub(crate) struct RelayReceiver(UnixDatagram);

/// The new process's end of the socket pair.
#[derive(Debug)]
pub(in crate::http3) struct RelaySender {
    socket: UnixDatagram,
    /// Number of the old process.
    process: u8,
}

/// The state of HTTP/3 that a process inherits.
pub(in crate::http3) struct Inherited {
    pub(in crate::http3) secrets: Http3Secrets,
    pub(in crate::http3) relay: RelaySender,
}

/// Creates the socket pair in the old process, which has these secrets and this number. The second
/// end is for the new process.
pub(in crate::http3) fn pair(
    secrets: &Http3Secrets,
    process: u8,
) -> io::Result<(RelayReceiver, Socket)> {
    let (ours, theirs) = UnixDatagram::pair()?;
    ours.set_nonblocking(true)?;
    let mut greeting = vec![VERSION, process];
    greeting.extend_from_slice(secrets.seed());
    ours.send(&greeting)?;
    Ok((RelayReceiver(ours), OwnedFd::from(theirs).into()))
}

/// The state inherited through `socket`; `None` if the old process speaks another version.
pub(in crate::http3) fn inherit(socket: Socket) -> Option<Inherited> {
    let socket = UnixDatagram::from(OwnedFd::from(socket));
    socket.set_nonblocking(true).ok()?;
    let mut greeting = [0; GREETING_BYTES];
    let len = socket.recv(&mut greeting).ok()?;
    let [version, process, seed @ ..] = greeting;
    (len == GREETING_BYTES && version == VERSION).then(|| Inherited {
        secrets: Http3Secrets::new(seed),
        relay: RelaySender { socket, process },
    })
}

impl RelaySender {
    pub(in crate::http3) fn process(&self) -> u8 {
        self.process
    }

    /// Forwards `datagram` to the old process's `endpoint`; false if that process has ended.
    pub(in crate::http3) fn send(&self, endpoint: u16, datagram: &Datagram) -> bool {
        match self.socket.send(&encode(endpoint, datagram)) {
            Ok(_) => true,
            // A full queue loses the datagram; its sender repeats the data.
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
        }
    }
}

impl RelayReceiver {
    /// Passes each received datagram to `deliver`, with its endpoint, until the new process has
    /// ended.
    pub(in crate::http3) async fn run(self, deliver: impl Fn(u16, Datagram)) {
        let socket = match tokio::net::UnixDatagram::from_std(self.0) {
            Ok(socket) => socket,
            Err(error) => {
                tracing::error!(%error, "HTTP/3 connections get no more datagrams");
                return;
            }
        };
        let mut message = [0; MAX_MESSAGE_BYTES];
        while let Ok(len) = socket.recv(&mut message).await {
            if let Some((endpoint, datagram)) = message.get(..len).and_then(decode) {
                deliver(endpoint, datagram);
            }
        }
    }
}

fn encode(endpoint: u16, datagram: &Datagram) -> Vec<u8> {
    let Datagram {
        remote,
        local,
        ecn,
        bytes,
    } = datagram;
    let mut message = Vec::with_capacity(HEADER_BYTES + bytes.len());
    message.extend_from_slice(&endpoint.to_be_bytes());
    message.push(ecn.map_or(0, |ecn| ecn as u8));
    message.extend_from_slice(&mapped(remote.ip()).octets());
    message.extend_from_slice(&remote.port().to_be_bytes());
    message.extend_from_slice(&local.map_or(Ipv6Addr::UNSPECIFIED, mapped).octets());
    message.extend_from_slice(bytes);
    message
}

fn decode(message: &[u8]) -> Option<(u16, Datagram)> {
    let (endpoint, rest) = message.split_first_chunk::<2>()?;
    let (ecn, rest) = rest.split_first()?;
    let (ip, rest) = rest.split_first_chunk::<16>()?;
    let (port, rest) = rest.split_first_chunk::<2>()?;
    let (local, bytes) = rest.split_first_chunk::<16>()?;
    let ip = Ipv6Addr::from(*ip).to_canonical();
    let local = Ipv6Addr::from(*local);
    let datagram = Datagram {
        remote: SocketAddr::new(ip, u16::from_be_bytes(*port)),
        local: (!local.is_unspecified()).then(|| local.to_canonical()),
        ecn: EcnCodepoint::from_bits(*ecn),
        bytes: BytesMut::from(bytes),
    };
    Some((u16::from_be_bytes(*endpoint), datagram))
}

fn mapped(ip: IpAddr) -> Ipv6Addr {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn datagram(remote: &str, local: Option<&str>) -> Datagram {
        Datagram {
            remote: remote.parse().unwrap(),
            local: local.map(|ip| ip.parse().unwrap()),
            ecn: EcnCodepoint::from_bits(2),
            bytes: BytesMut::from(&b"bytes"[..]),
        }
    }

    #[test]
    fn messages_are_read_as_they_were_written() {
        for sent in [
            datagram("1.2.3.4:5", Some("127.0.0.1")),
            datagram("[2001:db8::1]:65535", None),
        ] {
            let (endpoint, read) = decode(&encode(258, &sent)).unwrap();
            assert_eq!(endpoint, 258);
            assert_eq!((read.remote, read.local), (sent.remote, sent.local));
            assert_eq!((read.ecn, &read.bytes), (sent.ecn, &sent.bytes));
        }
        assert!(decode(&[0; HEADER_BYTES - 1]).is_none());
    }

    #[test]
    fn a_new_process_reads_ids_of_the_old_one_and_passes_its_datagrams_on() {
        let secrets = Http3Secrets::new([7; SEED_BYTES]);
        let (receiver, theirs) = pair(&secrets, 3).unwrap();
        let inherited = inherit(theirs).unwrap();
        assert_eq!(inherited.secrets.id_key(), secrets.id_key());
        assert_eq!(inherited.relay.process(), 3);

        assert!(inherited.relay.send(5, &datagram("1.2.3.4:5", None)));
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().build().unwrap();
        runtime.block_on(async {
            let (sender, mut delivered) = tokio::sync::mpsc::unbounded_channel();
            let running = tokio::spawn(receiver.run(move |endpoint, datagram| {
                sender.send((endpoint, datagram)).unwrap();
            }));
            let (endpoint, datagram) = delivered.recv().await.unwrap();
            assert_eq!((endpoint, &datagram.bytes[..]), (5, &b"bytes"[..]));
            running.abort();
            assert!(running.await.is_err());
        });
        assert!(!inherited.relay.send(5, &datagram("1.2.3.4:5", None)));
    }
}
