//! Handshakes that a client never completes.

use super::http3::{Http3Client, Site};
use quinn::Connecting;
use std::net::UdpSocket;
use tokio::runtime::{Builder, Runtime};

/// Open handshakes, more than an endpoint has without asking clients to prove their address.
pub(crate) struct HeldHandshakes {
    _open: Vec<(Http3Client, Connecting)>,
    _runtime: Runtime,
}

/// More than the limit of an endpoint.
const COUNT: usize = 40;

/// The type of a Retry packet, with the bits that are fixed. [RFC 9000 §17.2.5]
const RETRY: u8 = 0xf0;

impl HeldHandshakes {
    /// Begins handshakes with the single worker of `site` until it sends a Retry. Its answers do not reach the clients.
    pub(crate) fn open(site: &Site) -> Self {
        let bind = || UdpSocket::bind("127.0.0.1:0").unwrap();
        let (front, back) = (bind(), bind());
        back.connect(site.proxyd.address()).unwrap();
        let (address, to_server) = (front.local_addr().unwrap(), back.try_clone().unwrap());
        std::thread::spawn(move || {
            let mut datagram = [0; 1500];
            while let Ok(len) = front.recv(&mut datagram) {
                drop(to_server.send(&datagram[..len]));
            }
        });
        let runtime = Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let entered = runtime.enter();
        let open = (0..COUNT).map(|_| {
            let client = Http3Client::trusting(&site.authority, None);
            let connecting = client.endpoint.connect(address, "a.test").unwrap();
            (client, connecting)
        });
        let open = open.collect();
        drop(entered);
        let mut datagram = [0; 1500];
        while back.recv(&mut datagram).unwrap() == 0 || datagram[0] & RETRY != RETRY {}
        Self {
            _open: open,
            _runtime: runtime,
        }
    }
}
