//! The new process of an upgrade, with the test as its predecessor.

use crate::support::{BINARY, Config};
use proxy_testkit::{EVENT_TIMEOUT, RawClient, Upstream, get};
use rustix::cmsg_space;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::{self, File};
use std::io::{IoSlice, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// A process that waits for sockets. Dropping it kills the process.
struct NewProcess {
    line: UnixStream,
    child: Child,
    _folder: tempfile::TempDir,
}

impl NewProcess {
    fn start(kdl: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("proxyd.kdl");
        let kdl = [kdl, "\nadmin { address \"127.0.0.1:0\" }"].concat();
        fs::write(&config, kdl).unwrap();
        let (line, theirs) = UnixStream::pair().unwrap();
        line.set_read_timeout(Some(EVENT_TIMEOUT)).unwrap();
        let child = Command::new(BINARY)
            .arg("--config")
            .arg(config)
            .env("PROXYD_UPGRADE_FROM", std::process::id().to_string())
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            line,
            child,
            _folder: folder,
        }
    }

    /// Sends descriptors and a text, either as a predecessor does or invalid ones.
    fn send(&self, text: &[u8], passed: &[BorrowedFd<'_>]) {
        let mut space = [MaybeUninit::uninit(); cmsg_space!(ScmRights(4))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        assert!(passed.is_empty() || control.push(SendAncillaryMessage::ScmRights(passed)));
        sendmsg(
            &self.line,
            &[IoSlice::new(text)],
            &mut control,
            SendFlags::NOSIGNAL,
        )
        .unwrap();
    }

    /// Stops sending, and waits for the process. Returns its exit code and its events.
    fn exit(mut self) -> (Option<i32>, String) {
        self.line.shutdown(std::net::Shutdown::Write).unwrap();
        let mut reported = String::new();
        let mut stderr = self.child.stderr.take().unwrap();
        stderr.read_to_string(&mut reported).unwrap();
        (self.child.wait().unwrap().code(), reported)
    }
}

impl Drop for NewProcess {
    fn drop(&mut self) {
        // Fails only if the process has already exited.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

fn framed(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).unwrap();
    [&length.to_be_bytes(), text.as_bytes()].concat()
}

fn labelled(address: SocketAddr) -> Vec<u8> {
    framed(&format!("proxyd-sockets-1 0\0door-0 own {address}\0"))
}

#[test]
fn the_new_process_takes_no_client_before_the_old_one_has_answered() {
    let upstream = Upstream::saying("hi");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut new_process = NewProcess::start(&Config::to(&upstream).at(address).kdl());
    let mut client = RawClient::connect(address);
    client.send(get("/", &[]));
    new_process.send(&labelled(address), &[socket.as_fd()]);

    let mut word = [0];
    new_process.line.read_exact(&mut word).unwrap();

    crate::support::pause(&mut client, 200);
    new_process.line.write_all(&word).unwrap();
    assert_eq!(client.response().text(), "hi");
}

#[test]
fn the_new_process_serves_after_the_end_of_the_old_one() {
    let upstream = Upstream::saying("hi");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let mut new_process = NewProcess::start(&Config::to(&upstream).at(address).kdl());
    let mut client = RawClient::connect(address);
    client.send(get("/", &[]));
    new_process.send(&labelled(address), &[socket.as_fd()]);

    let mut word = [0];
    new_process.line.read_exact(&mut word).unwrap();
    new_process.line.shutdown(std::net::Shutdown::Both).unwrap();

    assert_eq!(client.response().text(), "hi");
}

#[test]
fn a_handover_from_another_program_is_refused() {
    let upstream = Upstream::saying("hi");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let kdl = Config::to(&upstream).kdl();
    let label = labelled(socket.local_addr().unwrap());
    let cut = label.split_last().unwrap().1;
    let several = [socket.as_fd(), socket.as_fd()];
    let cases: &[(&[u8], &[BorrowedFd<'_>], &str)] = &[
        (b"", &[], "end of file"),
        (b"\0\0", &[], "end of file"),
        (cut, &several[..1], "fill whole buffer"),
        (b"\xff\xff\xff\xffproxyd", &[], "another version"),
        (b"GET / HTTP/1.1\r\n\r\n", &[], "another version"),
        (&framed("proxyd-sockets-9 0\0"), &[], "another version"),
        (
            &framed("proxyd-sockets-1 0\0\u{fffd}"),
            &[],
            "another version",
        ),
        (&label, &[], "lost in transit"),
        (&label, &several, "lost in transit"),
    ];
    for (text, passed, words) in cases {
        let new_process = NewProcess::start(&kdl);
        if !text.is_empty() {
            new_process.send(text, passed);
        }

        let (code, reported) = new_process.exit();

        assert_eq!(code, Some(1), "{reported}");
        assert!(reported.contains("cannot take over"), "{reported}");
        assert!(reported.contains(words), "{words} in {reported}");
    }
}

#[test]
fn descriptors_that_are_not_sockets_are_not_listened_on() {
    let upstream = Upstream::saying("hi");
    let address = SocketAddr::from(([127, 0, 0, 1], proxy_testkit::free_port()));
    let nothing = File::open("/dev/null").unwrap();
    let mut new_process = NewProcess::start(&Config::to(&upstream).at(address).kdl());

    new_process.send(&labelled(address), &[nothing.as_fd()]);
    let mut word = [0];
    new_process.line.read_exact(&mut word).unwrap();
    new_process.line.write_all(&word).unwrap();

    // The process has bound the address itself.
    assert_eq!(RawClient::connect(address).ask(get("/", &[])).text(), "hi");
}

#[test]
fn the_variable_of_another_s_parent_means_nothing() {
    let upstream = Upstream::saying("hi");
    let kdl = Config::to(&upstream).kdl();
    for forged in ["1", "0", "-1", "", "none"] {
        let launch = proxy_testkit::Launch::new(BINARY, &kdl);
        let proxyd = launch.env("PROXYD_UPGRADE_FROM", forged).start();
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    }
}
