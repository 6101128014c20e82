//! UDP sockets, read and written in batches.

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSocketState};
use socket2::{SockRef, Socket};
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// Longest datagram that is received, in bytes: the MTU of Ethernet.
const MAX_DATAGRAM_BYTES: usize = 1500;

/// Number of messages that one system call receives; each may hold several datagrams.
const BATCH: usize = 4;

/// Requested size of the receive buffer, in bytes; the kernel may allow less.
const RECEIVE_BUFFER_BYTES: usize = 2 << 20;

/// A received datagram.
#[derive(Debug)]
pub(super) struct Datagram {
    pub(super) remote: SocketAddr,
    /// The address of this host to which it was sent.
    pub(super) local: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
    pub(super) bytes: BytesMut,
}

/// A bound UDP socket.
pub(super) struct DatagramSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    port: u16,
}

/// Room for received messages.
pub(super) struct ReceiveBuffer(Vec<u8>);

impl DatagramSocket {
    /// # Errors
    /// The socket is not UDP, or misses an option.
    pub(super) fn new(socket: Socket) -> io::Result<Self> {
        let socket = UdpSocket::from_std(socket.into())?;
        let state = UdpSocketState::new((&socket).into())?;
        // A smaller buffer loses datagrams under load, which are sent again.
        drop(state.set_recv_buffer_size((&socket).into(), RECEIVE_BUFFER_BYTES));
        Ok(Self {
            port: socket.local_addr()?.port(),
            socket,
            state,
        })
    }

    /// Duplicates the socket with a separate registration, because each one wakes one task.
    ///
    /// # Errors
    /// A lack of file descriptors.
    pub(super) fn duplicate(&self) -> io::Result<Self> {
        Self::new(SockRef::from(&self.socket).try_clone()?)
    }

    /// Number of datagrams that one system call sends at most.
    pub(super) fn max_segments(&self) -> usize {
        self.state.max_gso_segments()
    }

    pub(super) fn receive_buffer(&self) -> ReceiveBuffer {
        ReceiveBuffer(vec![
            0;
            self.state.gro_segments() * MAX_DATAGRAM_BYTES * BATCH
        ])
    }

    /// Receives a batch, and passes each datagram to `take`.
    pub(super) fn poll_receive(
        &self,
        cx: &mut Context<'_>,
        ReceiveBuffer(buffer): &mut ReceiveBuffer,
        mut take: impl FnMut(Datagram),
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_recv_ready(cx))?;
            let mut metas = [RecvMeta::default(); BATCH];
            let room_bytes = buffer.len() / BATCH;
            let mut rooms = buffer.chunks_exact_mut(room_bytes);
            let mut slices: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| IoSliceMut::new(rooms.next().unwrap_or_default()));
            let received = self.socket.try_io(Interest::READABLE, || {
                self.state
                    .recv((&self.socket).into(), &mut slices, &mut metas)
            });
            let count = match received {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => continue,
                Err(error) => return Poll::Ready(Err(error)),
            };
            for (meta, room) in metas.iter().zip(&slices).take(count) {
                let bytes = room.get(..meta.len).unwrap_or_default();
                for datagram in bytes.chunks(meta.stride.max(1)) {
                    take(Datagram {
                        remote: meta.addr,
                        local: meta.dst_ip,
                        ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
                        bytes: BytesMut::from(datagram),
                    });
                }
            }
            return Poll::Ready(Ok(()));
        }
    }

    /// Sends `bytes` as `transmit` describes them. Pending while the socket accepts nothing. Other
    /// errors lose the datagrams, like the network.
    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        transmit: &Transmit,
        bytes: &[u8],
    ) -> Poll<()> {
        let out = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit
                .ecn
                .and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: bytes,
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        loop {
            if ready!(self.socket.poll_send_ready(cx)).is_err() {
                return Poll::Ready(());
            }
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                self.state.send((&self.socket).into(), &out)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(()) | Err(_) => return Poll::Ready(()),
            }
        }
    }

    /// This host's address and port for a datagram sent to `local`; without `local`, the bound
    /// address.
    pub(super) fn local(&self, local: Option<IpAddr>) -> Option<SocketAddr> {
        let ip = local.or_else(|| Some(self.socket.local_addr().ok()?.ip()))?;
        Some(SocketAddr::new(ip, self.port))
    }
}
