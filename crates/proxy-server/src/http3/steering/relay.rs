//! Forwarding of datagrams from a new process to those before it, during upgrades.
//!
//! All processes hold the same UDP sockets, and the newest one receives from them. It forwards
//! datagrams of an old process's connections through a pair of Unix sockets. The first message
//! takes the other direction: it holds the old process's secrets, with which the new one reads
//! connection IDs. A process that is replaced passes on its own sockets to still older processes:
//! it may end before them.

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

/// Version, number of the process, seed of the secrets. The numbers of older processes follow, one
/// byte for each passed socket; earlier releases do not read them.
const GREETING_BYTES: usize = 2 + SEED_BYTES;

/// Maximum number of processes that a new process forwards to besides the one before it. Datagrams
/// of still older ones are answered by a stateless reset.
const MAX_OLDER_PROCESSES: usize = 8;

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
    /// Number of the process before this one.
    pub(in crate::http3) process: u8,
    /// Senders to the process before this one, and to older ones, newest first.
    pub(in crate::http3) relays: Vec<RelaySender>,
}

/// Creates the socket pair in the old process, which has these secrets and this number. The
/// returned sockets are for the new process: the second end of the pair, and copies of those to
/// `older` processes that have not ended.
pub(in crate::http3) fn pair(
    secrets: &Http3Secrets,
    process: u8,
    older: &[RelaySender],
) -> io::Result<(RelayReceiver, Vec<Socket>)> {
    let (ours, theirs) = UnixDatagram::pair()?;
    ours.set_nonblocking(true)?;
    let mut greeting = vec![VERSION, process];
    greeting.extend_from_slice(secrets.seed());
    let mut sockets = vec![OwnedFd::from(theirs).into()];
    let alive = older.iter().filter(|older| older.is_alive());
    for older in alive.take(MAX_OLDER_PROCESSES) {
        greeting.push(older.process);
        sockets.push(OwnedFd::from(older.socket.try_clone()?).into());
    }
    ours.send(&greeting)?;
    Ok((RelayReceiver(ours), sockets))
}

/// The state inherited through `sockets`, of which the first one has the greeting; `None` without
/// one, and if the old process speaks another version.
pub(in crate::http3) fn inherit(sockets: Vec<Socket>) -> Option<Inherited> {
    let mut sockets = sockets
        .into_iter()
        .map(|socket| UnixDatagram::from(OwnedFd::from(socket)));
    let first = sockets.next()?;
    first.set_nonblocking(true).ok()?;
    let mut greeting = [0; GREETING_BYTES + MAX_OLDER_PROCESSES];
    let len = first.recv(&mut greeting).ok()?;
    let (greeting, older) = greeting.get(..len)?.split_first_chunk::<GREETING_BYTES>()?;
    let [version, process, seed @ ..] = *greeting;
    if version != VERSION {
        return None;
    }
    let older = older.iter().copied().zip(sockets);
    let mut relays = vec![RelaySender {
        socket: first,
        process,
    }];
    relays.extend(older.map(|(process, socket)| RelaySender { socket, process }));
    Some(Inherited {
        secrets: Http3Secrets::new(seed),
        process,
        relays,
    })
}

impl RelaySender {
    pub(in crate::http3) fn process(&self) -> u8 {
        self.process
    }

    /// Forwards `datagram` to the old process's `endpoint`; false if that process has ended.
    pub(in crate::http3) fn send(&self, endpoint: u16, datagram: &Datagram) -> bool {
        self.send_message(&encode(endpoint, datagram))
    }

    /// Returns true if the old process has not ended. It ignores the empty message.
    fn is_alive(&self) -> bool {
        self.send_message(&[])
    }

    fn send_message(&self, message: &[u8]) -> bool {
        match self.socket.send(message) {
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
    use std::cell::RefCell;
    use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

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
        let (receiver, theirs) = pair(&secrets, 3, &[]).unwrap();
        let inherited = inherit(theirs).unwrap();
        assert_eq!(inherited.secrets.id_key(), secrets.id_key());
        assert_eq!(inherited.process, 3);
        let [relay] = &inherited.relays[..] else {
            panic!("one process");
        };
        assert_eq!(relay.process(), 3);

        assert!(relay.send(5, &datagram("1.2.3.4:5", None)));
        let running = received(receiver);
        assert_eq!(running.next(), (5, b"bytes".to_vec()));
        drop(running);
        assert!(!relay.send(5, &datagram("1.2.3.4:5", None)));
    }

    #[test]
    fn a_third_process_reaches_the_first_one_even_after_the_end_of_the_second() {
        let secrets = Http3Secrets::new([7; SEED_BYTES]);
        let (of_ended, to_ended) = pair(&secrets, 0, &[]).unwrap();
        let (first, to_first) = pair(&secrets, 1, &[]).unwrap();
        let mut older = inherit(to_first).unwrap().relays;
        older.extend(inherit(to_ended).unwrap().relays);
        drop(of_ended);

        let (second, to_second) = pair(&secrets, 2, &older).unwrap();
        assert_eq!(to_second.len(), 2);
        let third = inherit(to_second).unwrap();
        drop((second, older));
        let processes: Vec<u8> = third.relays.iter().map(RelaySender::process).collect();
        assert_eq!((third.process, &processes[..]), (2, &[2, 1][..]));
        let [to_second, to_first] = &third.relays[..] else {
            panic!("two processes");
        };
        assert!(!to_second.send(9, &datagram("1.2.3.4:5", None)));
        assert!(to_first.send(9, &datagram("1.2.3.4:5", None)));
        // The messages that asked whether the process is alive are not delivered.
        assert_eq!(received(first).next(), (9, b"bytes".to_vec()));
    }

    #[test]
    fn the_number_of_older_processes_is_bounded() {
        let secrets = Http3Secrets::new([7; SEED_BYTES]);
        let mut receivers = Vec::new();
        let mut older = Vec::new();
        for process in 0..20 {
            let (receiver, sockets) = pair(&secrets, process, &older).unwrap();
            assert!(sockets.len() <= 1 + MAX_OLDER_PROCESSES);
            receivers.push(receiver);
            older = inherit(sockets).unwrap().relays;
        }
        let processes: Vec<u8> = older.iter().map(RelaySender::process).collect();
        assert_eq!(processes, [19, 18, 17, 16, 15, 14, 13, 12, 11]);
    }

    /// Datagrams that a receiver delivers, on a runtime of their own.
    struct Received {
        runtime: tokio::runtime::Runtime,
        delivered: RefCell<UnboundedReceiver<(u16, Vec<u8>)>>,
    }

    fn received(receiver: RelayReceiver) -> Received {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_io().build().unwrap();
        let (sender, delivered) = unbounded_channel();
        runtime.spawn(receiver.run(move |endpoint, datagram| {
            sender.send((endpoint, datagram.bytes.to_vec())).unwrap();
        }));
        Received {
            runtime,
            delivered: RefCell::new(delivered),
        }
    }

    impl Received {
        fn next(&self) -> (u16, Vec<u8>) {
            let mut delivered = self.delivered.borrow_mut();
            self.runtime.block_on(delivered.recv()).unwrap()
        }
    }
}
