//! Addresses of listeners: IPv6, accept queues, ports in use, privileged ports.

use crate::installed::upgrade;
use crate::support::{BINARY, Config};
use proxy_testkit::{Launch, Proxyd, RawClient, Reload, Upstream, free_port, get};
use rustix::process::Signal;
use std::fs::{self, DirEntry, Permissions};
use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;

fn at(upstream: &Upstream, address: impl Into<SocketAddr>) -> Config {
    Config::to(upstream).at(address.into())
}

#[test]
fn both_families_listen_at_one_port_each_for_itself() {
    let upstream = Upstream::saying("hi");
    let port = free_port();
    let second = format!("listeners {{ listener \"six\" {{ address \"[::]:{port}\" }} }}");
    let config = at(&upstream, (Ipv4Addr::UNSPECIFIED, port)).top(&second);
    let proxyd = config.start();

    for (client, ip) in [
        (SocketAddr::from((Ipv4Addr::LOCALHOST, port)), "127.0.0.1"),
        (SocketAddr::from((Ipv6Addr::LOCALHOST, port)), "::1"),
    ] {
        let answer = RawClient::connect(client).ask(get("/", &[]));
        assert_eq!(answer.text(), "hi");
        let record = proxyd.access_record(&answer.correlation_id());
        assert_eq!(record.text("client_ip"), ip);
    }
    // Only the first listener is restricted to IPv6.
    assert_eq!(
        proxyd.reload(&at(&upstream, (Ipv4Addr::UNSPECIFIED, port)).kdl()),
        Reload::Applied
    );
    assert!(RawClient::try_connect((Ipv6Addr::LOCALHOST, port).into()).is_err());
}

#[test]
fn ipv4_clients_of_a_socket_for_both_families_have_their_own_address() {
    let upstream = Upstream::saying("hi");
    // Opened like the sockets of systemd for `ListenStream=80`.
    let socket = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)).unwrap();
    let port = socket.local_addr().unwrap().port();
    let kdl = at(&upstream, (Ipv6Addr::UNSPECIFIED, port)).kdl();
    let proxyd = Launch::new(BINARY, &kdl).socket(socket).start();

    let answer = RawClient::connect((Ipv4Addr::LOCALHOST, port).into()).ask(get("/", &[]));

    let record = proxyd.access_record(&answer.correlation_id());
    assert_eq!(record.text("client_ip"), "127.0.0.1");
}

fn skip(why: &str) {
    let printed = format!("skipped: {why}\n");
    io::stderr().lock().write_all(printed.as_bytes()).unwrap();
}

/// Returns a link-local address of this host, with its interface.
fn link_local() -> Option<SocketAddrV6> {
    let table = fs::read_to_string("/proc/net/if_inet6").ok()?;
    let line = table.lines().find(|line| line.starts_with("fe80"))?;
    let mut words = line.split_whitespace();
    let address = u128::from_str_radix(words.next()?, 16).ok()?;
    let interface = u32::from_str_radix(words.next()?, 16).ok()?;
    Some(SocketAddrV6::new(address.into(), 0, 0, interface))
}

#[test]
fn a_link_local_address_is_bound_with_its_interface() {
    let Some(address) = link_local() else {
        skip("this host has no link-local address");
        return;
    };
    let upstream = Upstream::saying("hi");
    let mut proxyd = at(&upstream, address).start();

    for _ in 0..2 {
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
        upgrade(&mut proxyd);
    }
}

#[test]
fn a_port_in_use_is_reported_with_its_place_and_advice() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let upstream = Upstream::saying("");

    let mut proxyd = Launch::new(BINARY, &at(&upstream, address).kdl()).spawn();

    assert_eq!(proxyd.wait().code(), Some(1));
    let printed = proxyd.stderr().to_the_end().join("\n");
    let hint = format!("`ss -ltnp 'sport = :{}'` shows it", address.port());
    for words in [
        "address-in-use",
        "proxyd.kdl:2:",
        &address.to_string(),
        &hint,
    ] {
        assert!(printed.contains(words), "{words} in:\n{printed}");
    }
}

/// Returns the number of connections that the kernel accepts while the process does not.
fn queue_of(proxyd: &Proxyd) -> usize {
    proxyd.signal(Signal::STOP);
    let tasks = format!("/proc/{}/task", proxyd.id());
    let runs = |task: io::Result<DirEntry>| {
        let stat = fs::read_to_string(task.unwrap().path().join("stat"));
        !stat.unwrap_or_default().contains(") T ")
    };
    while fs::read_dir(&tasks).unwrap().any(runs) {
        std::thread::yield_now();
    }
    let wait = Duration::from_millis(150);
    let connect = |_| TcpStream::connect_timeout(&proxyd.address(), wait).ok();
    let connected: Vec<_> = (0..8).filter_map(connect).collect();
    proxyd.signal(Signal::CONT);
    connected.len()
}

#[test]
fn a_backlog_applies_to_inherited_sockets_too() {
    let upstream = Upstream::saying("hi");
    let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = socket.local_addr().unwrap();
    let config = |backlog: usize| {
        let config = at(&upstream, address);
        config.listener(&format!("backlog {backlog}")).kdl()
    };
    // A service manager's queue is longer. It holds one more than requested, because Linux compares
    // with "greater than".
    let mut proxyd = Launch::new(BINARY, &config(1)).socket(socket).start();
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    assert_eq!(queue_of(&proxyd), 2);

    assert_eq!(proxyd.reload(&config(3)), Reload::Applied);
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    assert_eq!(queue_of(&proxyd), 4);

    let admin = "\nadmin { address \"127.0.0.1:0\" }";
    fs::write(proxyd.config(), config(2) + admin).unwrap();
    upgrade(&mut proxyd);
    proxyd.wait_for_former();
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
    assert_eq!(queue_of(&proxyd), 3);
}

#[test]
fn a_backlog_that_the_system_does_not_grant_is_reported() {
    let limit = fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let limit: u32 = limit.trim().parse().unwrap();
    if limit >= 65_535 {
        return skip("this system grants every backlog");
    }
    let upstream = Upstream::saying("hi");
    let proxyd = Config::to(&upstream).listener("backlog 65535").start();

    let printed_text = proxyd.stderr().find(0, |record| {
        record.text("message") == "the system lets fewer connections wait"
    });
    assert_eq!(printed_text.number("limit"), Some(limit.into()));
}

/// Returns a free port below 1024. No other call returns it while the socket is open.
fn free_privileged_port() -> Option<(u16, UdpSocket)> {
    let mut claims = (600..1_000).filter_map(|port| {
        let claim = UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).ok()?;
        Some((port, claim))
    });
    claims.find(|(port, _)| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok())
}

#[test]
fn systemd_understands_the_units() {
    let folder = tempfile::tempdir().unwrap();
    let units = [
        (
            "proxyd.service",
            include_str!("../../../../examples/systemd/proxyd.service"),
        ),
        (
            "proxyd.socket",
            include_str!("../../../../examples/systemd/proxyd.socket"),
        ),
    ];
    let paths = units.map(|(name, text)| {
        let path = folder.path().join(name);
        fs::write(&path, text.replace("/usr/local/bin/proxyd", BINARY)).unwrap();
        path
    });
    let mut verify = std::process::Command::new("systemd-analyze");
    let Ok(verified) = verify.arg("verify").args(&paths).output() else {
        return skip("there is no systemd-analyze");
    };
    let printed = String::from_utf8_lossy(&verified.stderr);
    let faults: Vec<_> = printed
        .lines()
        .filter(|line| line.contains("proxyd"))
        .collect();
    assert!(faults.is_empty(), "{printed}");
}

/// Starts `proxyd` as an unprivileged user, if this process may do so.
struct Nobody {
    folder: tempfile::TempDir,
    port: u16,
    _claim: UdpSocket,
}

impl Nobody {
    /// Returns `None`, and prints the reason, if there are no such users or no privileged ports.
    fn find() -> Option<Self> {
        let may = rustix::process::geteuid().is_root()
            && std::process::Command::new("setpriv")
                .arg("--version")
                .output()
                .is_ok_and(|tried| tried.status.success());
        let first = fs::read_to_string("/proc/sys/net/ipv4/ip_unprivileged_port_start").ok();
        let port = free_privileged_port();
        let (port, claim) = port.unzip();
        let privileged = first.is_some_and(|first| first.trim() == "1024");
        if !may || !privileged {
            skip("it takes root, setpriv, and privileged ports below 1024");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        fs::copy(BINARY, folder.path().join("proxyd")).unwrap();
        Some(Self {
            folder,
            port: port?,
            _claim: claim?,
        })
    }

    /// Writes a script that starts `proxyd`, with these capabilities or none.
    fn script(&self, capabilities: &str) -> PathBuf {
        let path = self.folder.path().join("start");
        let program = self.folder.path().join("proxyd");
        let text = format!(
            "#!/bin/sh\nexec setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs \
             --inh-caps=-all{capabilities} --ambient-caps=-all{capabilities} {} \"$@\"\n",
            program.display()
        );
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from((Ipv4Addr::LOCALHOST, self.port))
    }

    fn launch(&self, capabilities: &str, upstream: &Upstream) -> Launch {
        let launch = Launch::new(
            self.script(capabilities),
            &at(upstream, self.address()).kdl(),
        );
        fs::set_permissions(launch.folder(), Permissions::from_mode(0o755)).unwrap();
        launch
    }
}

#[test]
fn a_privileged_port_takes_no_root() {
    let Some(nobody) = Nobody::find() else { return };
    let upstream = Upstream::saying("hi");
    let mut proxyd = nobody.launch(",+net_bind_service", &upstream).start();
    let status = format!("/proc/{}/status", proxyd.id());
    assert!(fs::read_to_string(status).unwrap().contains("Uid:\t65534"));

    for _ in 0..2 {
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
        upgrade(&mut proxyd);
        proxyd.wait_for_former();
    }
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}

#[test]
fn a_privileged_port_of_the_manager_s_takes_no_rights_at_all() {
    let Some(nobody) = Nobody::find() else { return };
    let upstream = Upstream::saying("hi");
    let socket = TcpListener::bind(nobody.address()).unwrap();
    let launch = nobody.launch("", &upstream).socket(socket);
    let mut proxyd = launch.start();

    for _ in 0..2 {
        assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
        upgrade(&mut proxyd);
        proxyd.wait_for_former();
    }
}

#[test]
fn advice_on_a_privileged_port_is_reported() {
    let Some(nobody) = Nobody::find() else { return };
    let upstream = Upstream::saying("hi");
    let mut proxyd = nobody.launch("", &upstream).spawn();

    assert_eq!(proxyd.wait().code(), Some(1));
    let printed = proxyd.stderr().to_the_end().join("\n");
    assert!(printed.contains("CAP_NET_BIND_SERVICE"), "{printed}");
}
