//! Passing of sockets from one process to another.

use super::label::{Label, List};
use crate::listen::SocketFile;
use crate::runtime::disk_thread::DiskThread;
use proxy_model::BindAddress;
use rustix::cmsg_space;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use socket2::Socket;
use std::io::{self, IoSlice, IoSliceMut, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use tokio::io::{AsyncWriteExt, Interest};

/// Maximum number of descriptors of one message: the kernel's limit.
const MAX_DESCRIPTORS: usize = 253;

/// Maximum size of a list of labels, in bytes.
const MAX_LABEL_LIST_BYTES: usize = 1024 * 1024;

/// A listening socket from another process, or for one.
#[derive(Debug)]
pub(crate) struct Passed {
    pub(crate) label: Label,
    pub(crate) socket: Socket,
}

impl Passed {
    /// Closes an unused socket; `disk` removes its file.
    pub(crate) fn close(self, disk: &DiskThread) {
        let Self { label, socket } = self;
        drop(socket);
        if let BindAddress::Unix(path) = label.address
            && label.owned
        {
            disk.leave(move || drop(SocketFile::at(&path)));
        }
    }
}

pub(super) async fn send(to: &mut tokio::net::UnixStream, sockets: &[Passed]) -> io::Result<()> {
    let mut left = sockets.len();
    let none: &[Passed] = &[];
    let empty = sockets.is_empty().then_some(none);
    for some in sockets.chunks(MAX_DESCRIPTORS).chain(empty) {
        left -= some.len();
        let list = List {
            labels: some.iter().map(|passed| passed.label.clone()).collect(),
            more: left,
        };
        let text = list.encode();
        let length = u32::try_from(text.len()).map_err(io::Error::other)?;
        let bytes = [&length.to_be_bytes(), text.as_bytes()].concat();
        let descriptors: Vec<_> = some.iter().map(|passed| passed.socket.as_fd()).collect();
        let stream = &*to;
        let sending = || send_with(stream.as_fd(), &bytes, &descriptors);
        let sent = to.async_io(Interest::WRITABLE, sending).await?;
        to.write_all(bytes.get(sent..).unwrap_or_default()).await?;
    }
    Ok(())
}

fn send_with(
    to: BorrowedFd<'_>,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::ErrorKind::OutOfMemory.into());
    }
    let pieces = [IoSlice::new(bytes)];
    Ok(sendmsg(to, &pieces, &mut control, SendFlags::NOSIGNAL)?)
}

/// Receives the sockets that [`send`] sent. Blocks.
pub(super) fn receive(from: &mut UnixStream) -> io::Result<Vec<Passed>> {
    let mut all = Vec::new();
    loop {
        let (length, descriptors) = receive_beginning(from)?;
        if length > MAX_LABEL_LIST_BYTES {
            return Err(not_understood());
        }
        let mut text = vec![0; length];
        from.read_exact(&mut text)?;
        let text = String::from_utf8(text).map_err(|_| not_understood())?;
        let List { labels, more } = List::decode(&text).ok_or_else(not_understood)?;
        if labels.len() != descriptors.len() {
            return Err(io::Error::other("sockets were lost in transit"));
        }
        let sockets = descriptors.into_iter().map(Socket::from);
        let passed = labels.into_iter().zip(sockets);
        all.extend(passed.map(|(label, socket)| Passed { label, socket }));
        if more == 0 {
            return Ok(all);
        }
    }
}

/// The length of the following text, and the descriptors of the message.
fn receive_beginning(from: &UnixStream) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut length = [0; 4];
    let mut pieces = [IoSliceMut::new(&mut length)];
    let received = recvmsg(from, &mut pieces, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(some) = message {
            descriptors.extend(some);
        }
    }
    if received.flags.contains(ReturnFlags::CTRUNC) {
        return Err(io::Error::other(
            "there is no room for all sockets: too many open files",
        ));
    }
    if received.bytes != length.len() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    let length = usize::try_from(u32::from_be_bytes(length)).map_err(io::Error::other)?;
    Ok((length, descriptors))
}

fn not_understood() -> io::Error {
    io::Error::other("the old process has another version")
}

#[cfg(test)]
mod tests {
    use super::super::label::Purpose;
    use super::*;
    use std::net::TcpListener;

    fn pass(sockets: &[Passed]) -> Vec<Passed> {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let receiving = std::thread::spawn(move || receive(&mut theirs));
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build().unwrap();
        runtime.block_on(async {
            ours.set_nonblocking(true).unwrap();
            let mut ours = tokio::net::UnixStream::from_std(ours).unwrap();
            send(&mut ours, sockets).await.unwrap();
        });
        receiving.join().unwrap().unwrap()
    }

    fn copies(listener: &TcpListener, count: u32) -> Vec<Passed> {
        let address = BindAddress::Tcp(listener.local_addr().unwrap());
        let passed = |number| Passed {
            label: Label {
                purpose: Purpose::Listener(number),
                owned: true,
                address: address.clone(),
            },
            socket: listener.try_clone().unwrap().into(),
        };
        (0..count).map(passed).collect()
    }

    #[test]
    fn sockets_arrive_with_their_labels() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // Too many for one message.
        let sent = copies(&listener, 600);

        let received = pass(&sent);

        assert_eq!(received.len(), 600);
        for (one, other) in sent.iter().zip(&received) {
            assert_eq!(one.label, other.label);
            let bound = other.socket.local_addr().unwrap().as_socket();
            assert_eq!(bound, listener.local_addr().ok());
        }
    }

    #[test]
    fn nothing_can_be_passed_too() {
        assert!(pass(&[]).is_empty());
    }

    #[test]
    fn a_dropped_sender_is_an_error() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        drop(ours);
        assert!(receive(&mut theirs).is_err());
    }
}
