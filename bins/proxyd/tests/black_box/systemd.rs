//! Integration with a service manager: notifications, and inherited sockets.

use crate::support::{BINARY, Config};
use proxy_testkit::{Gate, Launch, Proxyd, RawClient, Reload, Upgrade, Upstream, free_port, get};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
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
            .set_read_timeout(Some(proxy_testkit::EVENT_TIMEOUT))
            .unwrap();
        Self { socket, folder }
    }

    fn start(&self, config: &Config) -> Proxyd {
        Launch::new(BINARY, &config.kdl())
            .env("NOTIFY_SOCKET", self.folder.path().join("notify"))
            .start()
    }

    fn next(&self) -> String {
        let mut buffer = [0; 1024];
        let length = self.socket.recv(&mut buffer).unwrap();
        String::from_utf8_lossy(&buffer[..length]).into_owned()
    }
}

#[test]
fn the_manager_is_notified_of_the_state_of_the_process() {
    let manager = Manager::new();
    let upstream = Upstream::saying("");
    let config = Config::to(&upstream);
    let mut proxyd = manager.start(&config);

    assert!(manager.next().contains("READY=1"));
    assert_eq!(proxyd.connect().ask(get("/", &[])).status, 200);

    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    let reload = manager.next();
    assert!(reload.contains("RELOADING=1") && reload.contains("MONOTONIC_USEC="));
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
fn the_service_manager_gets_the_new_main_pid_after_an_upgrade() {
    let manager = Manager::new();
    let upstream = Upstream::saying("");
    let mut proxyd = manager.start(&Config::to(&upstream));
    assert!(manager.next().contains("READY=1"));

    assert_eq!(proxyd.upgrade(), Upgrade::Done);

    let main = format!("MAINPID={}", proxyd.id());
    assert_eq!(manager.next().trim_end(), main);
    assert!(manager.next().contains("READY=1"));
    proxyd.wait_for_former();
    // The predecessor does not report its own exit.
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
fn a_socket_of_the_manager_is_used_and_its_queue_is_served() {
    let upstream = Upstream::saying("served");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    // The connection is in the accept queue before the process starts.
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

#[test]
fn a_socket_of_the_manager_is_reused_with_its_listener() {
    let upstream = Upstream::saying("served");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    // A service manager never closes the socket, so the address could not be bound again.
    let _kept = socket.try_clone().unwrap();
    let address = socket.local_addr().unwrap();
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let with = Config::to(&upstream).at(address);
    let without = Config::to(&upstream).at(elsewhere);
    let second = format!("listeners {{ listener \"x\" {{ address \"{address}\" }} }}");
    let in_use = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = in_use.local_addr().unwrap();
    let mut proxyd = Launch::new(BINARY, &with.kdl()).socket(socket).start();

    for _ in 0..2 {
        assert_eq!(proxyd.reload(&without.kdl()), Reload::Applied);
        // Adopted by a reload, which then fails.
        let fails = format!("{second}\nlisteners {{ listener \"y\" {{ address \"{taken}\" }} }}");
        let fails = Config::to(&upstream).at(elsewhere).top(&fails);
        assert!(matches!(proxyd.reload(&fails.kdl()), Reload::Refused(_)));
        assert_eq!(proxyd.reload(&with.kdl()), Reload::Applied);
        assert_eq!(
            RawClient::connect(address).ask(get("/", &[])).text(),
            "served"
        );
        // Once while the socket is used, and once while it is not.
        assert_eq!(proxyd.upgrade(), Upgrade::Done);
        assert_eq!(proxyd.reload(&without.kdl()), Reload::Applied);
        assert_eq!(proxyd.upgrade(), Upgrade::Done);
    }
    drop(in_use);
}

#[test]
fn a_socket_that_no_listener_names_is_reported() {
    let upstream = Upstream::saying("served");
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let elsewhere = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let kdl = Config::to(&upstream).at(elsewhere).kdl();

    let proxyd = Launch::new(BINARY, &kdl).socket(socket).start();

    let printed = proxyd.stderr().find(0, |record| {
        record
            .text("message")
            .starts_with("no listener has the address")
    });
    assert_eq!(printed.text("address"), address.to_string());
}

#[test]
fn a_passed_socket_that_does_not_listen_is_reported_and_left() {
    let upstream = Upstream::saying("served");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connection = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let file = std::fs::File::open("/dev/null").unwrap();

    for passed in [OwnedFd::from(file), OwnedFd::from(connection)] {
        let kdl = Config::to(&upstream).kdl();
        let launch = Launch::new(BINARY, &kdl).socket(TcpListener::from(passed));
        let proxyd = launch.start();
        let warned = |record: &proxy_testkit::Record| {
            record.text("level") == "WARN" && record.text("message").contains("service manager")
        };
        let _ = proxyd.stderr().find(0, warned);
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "served");
    }
}
