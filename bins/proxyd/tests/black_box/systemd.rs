//! What a service manager sees: notifications, and sockets it has opened.

use crate::support::{BINARY, Config};
use proxy_testkit::{Gate, Launch, RawClient, Reload, Upgrade, Upstream, get};
use std::net::TcpListener;
use std::os::unix::net::UnixDatagram;

struct Manager {
    socket: UnixDatagram,
    folder: tempfile::TempDir,
}

impl Manager {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = UnixDatagram::bind(folder.path().join("notify")).unwrap();
        socket
            .set_read_timeout(Some(proxy_testkit::PATIENCE))
            .unwrap();
        Self { socket, folder }
    }

    fn next(&self) -> String {
        let mut buffer = [0; 1024];
        let length = self.socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

#[test]
fn the_manager_is_told_what_the_process_does() {
    let manager = Manager::new();
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream);
    let launch = Launch::new(BINARY, &config.kdl());
    let mut proxyd = launch
        .env("NOTIFY_SOCKET", manager.folder.path().join("notify"))
        .start();

    assert!(manager.next().contains("READY=1"));
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);

    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    assert!(manager.next().contains("RELOADING=1"));
    assert!(manager.next().contains("READY=1"));

    assert!(matches!(proxyd.reload("routes {"), Reload::Refused(_)));
    assert!(manager.next().contains("RELOADING=1"));
    assert!(
        manager.next().contains("READY=1"),
        "the old configuration still serves"
    );

    proxyd.terminate();
    assert!(manager.next().contains("STOPPING=1"));
    assert!(proxyd.wait().success());
}

#[test]
fn the_manager_learns_which_process_took_over() {
    let manager = Manager::new();
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream);
    let launch = Launch::new(BINARY, &config.kdl());
    let mut proxyd = launch
        .env("NOTIFY_SOCKET", manager.folder.path().join("notify"))
        .start();
    assert!(manager.next().contains("READY=1"));

    assert_eq!(proxyd.upgrade(), Upgrade::Done);

    let main = format!("MAINPID={}", proxyd.id());
    assert_eq!(manager.next().trim_end(), main);
    assert!(manager.next().contains("READY=1"));
    proxyd.wait_for_former();
    // The old process says nothing of its own end.
    proxyd.terminate();
    assert!(manager.next().contains("STOPPING=1"));
    assert!(proxyd.wait().success());
}

#[test]
fn a_socket_of_the_manager_s_is_passed_on() {
    let upstream = Upstream::saying("served");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let config = Config::to(&upstream)
        .at(address)
        .top("system { worker-threads 2 }");
    let mut proxyd = Launch::new(BINARY, &config.kdl()).socket(socket).start();

    for _ in 0..2 {
        assert_eq!(proxyd.upgrade(), Upgrade::Done);
        proxyd.wait_for_former();
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "served");
    }
}

#[test]
fn a_socket_of_the_manager_s_does_where_any_port_will() {
    let upstream = Upstream::saying("served");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();

    let kdl = Config::to(&upstream).kdl();
    let proxyd = Launch::new(BINARY, &kdl).socket(socket).start();

    assert_eq!(proxyd.address(), address);
    assert_eq!(
        RawClient::connect(address).ask(get("/", &[])).text(),
        "served"
    );
}

#[test]
fn a_socket_of_the_manager_s_is_used_and_who_waits_there_is_served() {
    let upstream = Upstream::saying("served");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // Waits in the queue before the process exists.
    let mut early = RawClient::connect(address);
    early.send(get("/", &[]));
    let kept = socket.try_clone().unwrap();

    let config = Config::to(&upstream).at(address);
    let proxyd = Launch::new(BINARY, &config.kdl()).socket(socket).start();

    assert_eq!(proxyd.address(), address);
    assert_eq!(early.response().text(), "served");
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "served");
    drop(kept);
}

#[test]
fn several_workers_share_a_socket_of_the_manager_s() {
    let gate = Gate::new();
    let upstream = Upstream::slow_reader(&gate);
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let config = Config::to(&upstream)
        .at(address)
        .top("system { worker-threads 3 }");
    let mut proxyd = Launch::new(BINARY, &config.kdl()).socket(socket).start();

    let mut clients: Vec<_> = (0..12).map(|_| RawClient::connect(address)).collect();
    for client in &mut clients {
        client.send(get("/", &[]));
    }
    upstream.wait_for_requests(12);
    gate.open();
    for client in &mut clients {
        assert_eq!(client.response().status, 200);
    }

    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);
    proxyd.terminate();
    assert!(proxyd.wait().success());
}
