//! A name server on real sockets, with answers that a test changes.

use crate::journal::Journal;
use std::collections::HashMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
#[expect(
    clippy::disallowed_types,
    reason = "a test server has threads and no runtime"
)]
use std::sync::Mutex;
use std::sync::{Arc, PoisonError};
use std::thread;

/// Maximum UDP answer; a longer one is truncated, and requested again by TCP.
const MAX_UDP_BYTES: usize = 1232;

const A: u16 = 1;
const AAAA: u16 = 28;
const TXT: u16 = 16;
const SRV: u16 = 33;

const SERVER_FAILURE: u8 = 2;
const NO_SUCH_NAME: u8 = 3;

/// A name server for tests. Names without an answer do not exist.
#[derive(Clone, Debug)]
pub struct DnsServer {
    address: SocketAddr,
    zone: Zone,
    /// Each query: the protocol, the name, and the type of record.
    queries: Journal<(&'static str, String, u16)>,
}

#[expect(
    clippy::disallowed_types,
    reason = "a test server has threads and no runtime"
)]
type Zone = Arc<Mutex<HashMap<String, DnsReply>>>;

/// The answer to queries for one name.
#[derive(Clone, Debug)]
pub enum DnsReply {
    /// These addresses, with this TTL in seconds.
    Addresses(u32, Vec<IpAddr>),
    /// These addresses to queries for IPv4, with a TTL of one second, and no answer to any other.
    OnlyIpv4(Vec<IpAddr>),
    /// These SRV records, with this TTL in seconds: priority, weight, port, host.
    Services(u32, Vec<(u16, u16, u16, String)>),
    /// A TXT record for each line of this file, which a test changes; none without the file.
    TextsIn(PathBuf),
    /// The second address, with a TTL of one second. Over UDP, datagrams with the first address precede it that answer
    /// no query of the client: of another ID, question or sender, cut off or empty.
    AfterForgeries(IpAddr, IpAddr),
    /// The server has failed.
    Failure,
    /// No answer.
    Silence,
    /// Bytes that are not an answer.
    Garbage,
}

impl DnsServer {
    /// A server without names, on a port of its own.
    #[must_use]
    pub fn start() -> Self {
        let (udp, tcp) = sockets();
        let address = udp.local_addr().expect("a socket has an address");
        let server = Self {
            address,
            zone: Zone::default(),
            queries: Journal::default(),
        };
        let (by_udp, by_tcp) = (server.clone(), server.clone());
        thread::spawn(move || by_udp.serve_udp(&udp));
        thread::spawn(move || {
            while let Ok((stream, _)) = tcp.accept() {
                let server = by_tcp.clone();
                thread::spawn(move || server.serve_tcp(stream));
            }
        });
        server
    }

    /// The server's address, for UDP and TCP.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the answer for `name`.
    pub fn set(&self, name: &str, reply: DnsReply) {
        let mut zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        zone.insert(name.to_owned(), reply);
    }

    /// Sets the addresses of `name`, with a TTL of one second.
    pub fn set_addresses(&self, name: &str, addresses: &[IpAddr]) {
        self.set(name, DnsReply::Addresses(1, addresses.to_vec()));
    }

    /// From now on `name` does not exist.
    pub fn remove(&self, name: &str) {
        let mut zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        zone.remove(name);
    }

    /// All queries so far: the protocol, the name, and the type of record.
    #[must_use]
    pub fn queries(&self) -> Vec<(&'static str, String, u16)> {
        self.queries.entries()
    }

    /// Waits for `count` more queries than there are now.
    #[track_caller]
    pub fn wait_for_queries(&self, count: usize) {
        self.queries.wait_for(self.queries.len() + count);
    }

    fn serve_udp(&self, socket: &UdpSocket) {
        let mut buffer = [0; 4096];
        while let Ok((length, peer)) = socket.recv_from(&mut buffer) {
            let query = buffer.get(..length).unwrap_or_default();
            let Some(answer) = self.answer("udp", query) else {
                continue;
            };
            for (forgery, sender) in self.forgeries(query) {
                sender
                    .as_ref()
                    .unwrap_or(socket)
                    .send_to(&forgery, peer)
                    .unwrap_or_default();
            }
            let answer = if answer.len() > MAX_UDP_BYTES {
                truncated(&answer, query)
            } else {
                answer
            };
            socket.send_to(&answer, peer).unwrap_or_default();
        }
    }

    /// Datagrams that precede the answer to `query`, each with the socket of another sender if it has one.
    fn forgeries(&self, query: &[u8]) -> Vec<(Vec<u8>, Option<UdpSocket>)> {
        let Some((name, kind, end)) = question(query) else {
            return Vec::new();
        };
        let zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(DnsReply::AfterForgeries(forged, _)) = zone.get(&name).cloned() else {
            return Vec::new();
        };
        drop(zone);
        let data = address_data(forged, kind).unwrap_or_default();
        let answer = |query: &[u8]| {
            let question = query.get(12..end).unwrap_or_default();
            let header = header(query, 0, false, 1).unwrap_or_default();
            [&header, question, &record(kind, 1, &data)].concat()
        };
        let changed = |at: usize| {
            let mut query = query.to_vec();
            if let Some(byte) = query.get_mut(at) {
                *byte ^= 1;
            }
            answer(&query)
        };
        let stranger = UdpSocket::bind(("127.0.0.1", 0)).expect("a port is free");
        vec![
            (Vec::new(), None),
            (query.get(..1).unwrap_or_default().to_vec(), None),
            (changed(1), None),
            (changed(13), None),
            (changed(end - 3), None),
            (answer(query), Some(stranger)),
        ]
    }

    fn serve_tcp(&self, mut stream: TcpStream) -> Option<()> {
        loop {
            let mut length = [0; 2];
            stream.read_exact(&mut length).ok()?;
            let mut query = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut query).ok()?;
            let answer = self.answer("tcp", &query)?;
            let length = u16::try_from(answer.len()).ok()?;
            stream.write_all(&length.to_be_bytes()).ok()?;
            stream.write_all(&answer).ok()?;
        }
    }

    fn answer(&self, protocol: &'static str, query: &[u8]) -> Option<Vec<u8>> {
        let (name, kind, end) = question(query)?;
        self.queries.push((protocol, name.clone(), kind));
        let zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        let reply = zone.get(&name).cloned();
        drop(zone);
        let question = query.get(12..end)?;
        let (code, records) = match reply {
            None => (NO_SUCH_NAME, Vec::new()),
            Some(DnsReply::Failure) => (SERVER_FAILURE, Vec::new()),
            Some(DnsReply::Silence) => return None,
            Some(DnsReply::OnlyIpv4(_)) if kind != A => return None,
            Some(DnsReply::Garbage) => return Some(b"garbage".to_vec()),
            Some(DnsReply::OnlyIpv4(addresses)) => {
                let addresses = addresses.iter().filter_map(|ip| address_data(*ip, A));
                (0, addresses.map(|data| record(A, 1, &data)).collect())
            }
            Some(DnsReply::AfterForgeries(_, address)) => {
                let address = address_data(address, kind).into_iter();
                (0, address.map(|data| record(kind, 1, &data)).collect())
            }
            Some(DnsReply::Addresses(ttl, addresses)) => {
                let addresses = addresses.iter().filter_map(|ip| address_data(*ip, kind));
                (0, addresses.map(|data| record(kind, ttl, &data)).collect())
            }
            Some(DnsReply::Services(ttl, services)) if kind == SRV => {
                let services = services.iter().map(service_data);
                (0, services.map(|data| record(SRV, ttl, &data)).collect())
            }
            Some(DnsReply::TextsIn(file)) if kind == TXT => {
                let texts = fs::read_to_string(file).unwrap_or_default();
                let texts = texts.lines().map(text_data);
                (0, texts.map(|data| record(TXT, 0, &data)).collect())
            }
            Some(DnsReply::Services(..) | DnsReply::TextsIn(_)) => (0, Vec::new()),
        };
        let mut answer = header(query, code, false, records.len())?;
        answer.extend_from_slice(question);
        answer.extend(records.concat());
        Some(answer)
    }
}

fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let tcp = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
        let address = tcp.local_addr().expect("a socket has an address");
        if let Ok(udp) = UdpSocket::bind(address) {
            return (udp, tcp);
        }
    }
}

/// The name in lower case, the type, and the end of the question. [RFC 1035 §4.1.2]
fn question(query: &[u8]) -> Option<(String, u16, usize)> {
    let mut labels = Vec::new();
    let mut at = 12;
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        let label = query.get(at..at + length)?;
        labels.push(String::from_utf8_lossy(label).to_lowercase());
        at += length;
    }
    let kind = u16::from_be_bytes(query.get(at..at + 2)?.try_into().ok()?);
    Some((labels.join("."), kind, at + 4))
}

/// The header of an answer with one question. [RFC 1035 §4.1.1]
fn header(query: &[u8], code: u8, truncated: bool, records: usize) -> Option<Vec<u8>> {
    let id = query.get(..2)?;
    let flags = [0x84 | (u8::from(truncated) << 1), 0x80 | code];
    let records = u16::try_from(records).ok()?.to_be_bytes();
    Some([id, &flags, &[0, 1], &records, &[0; 4]].concat())
}

fn truncated(answer: &[u8], query: &[u8]) -> Vec<u8> {
    let end = question(query).map_or(12, |(_, _, end)| end);
    let mut cut = header(query, 0, true, 0).unwrap_or_default();
    cut.extend_from_slice(answer.get(12..end).unwrap_or_default());
    cut
}

/// A record of the name in the question. [RFC 1035 §4.1.3]
fn record(kind: u16, ttl: u32, data: &[u8]) -> Vec<u8> {
    let length = u16::try_from(data.len()).unwrap_or_default();
    let name = 0xc00c_u16.to_be_bytes();
    [
        &name[..],
        &kind.to_be_bytes(),
        &1_u16.to_be_bytes(),
        &ttl.to_be_bytes(),
        &length.to_be_bytes(),
        data,
    ]
    .concat()
}

fn address_data(ip: IpAddr, kind: u16) -> Option<Vec<u8>> {
    match ip {
        IpAddr::V4(ip) if kind == A => Some(ip.octets().to_vec()),
        IpAddr::V6(ip) if kind == AAAA => Some(ip.octets().to_vec()),
        IpAddr::V4(_) | IpAddr::V6(_) => None,
    }
}

/// A text of at most 255 bytes.
fn text_data(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).unwrap_or_default();
    [&[length], text.as_bytes()].concat()
}

fn service_data((priority, weight, port, host): &(u16, u16, u16, String)) -> Vec<u8> {
    let mut data = Vec::new();
    for number in [priority, weight, port] {
        data.extend(number.to_be_bytes());
    }
    for label in host.split('.').filter(|label| !label.is_empty()) {
        data.push(u8::try_from(label.len()).unwrap_or_default());
        data.extend_from_slice(label.as_bytes());
    }
    data.push(0);
    data
}
