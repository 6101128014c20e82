//! A server and proxyd with the same site.

use crate::exchange::{Exchange, Request};
use crate::peer::Peer;
use crate::upstream;
use proxy_migrate::{Source, migrate};
use proxy_testkit::{EVENT_TIMEOUT, Launch, Proxyd, RawClient, Upstream, closed_port, free_port};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread::park_timeout;
use std::time::Duration;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");
/// Pause between attempts to connect to a server that starts.
const PAUSE: Duration = Duration::from_millis(5);

/// The user `ann` with the password `one`, with a hash that both servers know.
const USERS: &str = "ann:$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS\n";

/// A response for errors, as `errorfile` of `HAProxy` takes it.
const ERROR_PAGE: &str =
    "HTTP/1.0 503 Service Unavailable\r\nContent-Type: text/html\r\n\r\n<h1>down</h1>\n";

/// A running server; ended when dropped.
struct Process {
    child: Child,
    folder: TempDir,
}

/// Both servers, with their target and their files.
pub(crate) struct Servers {
    peer: Process,
    _proxyd: Proxyd,
    upstream: Upstream,
    ports: [u16; 2],
    closed: SocketAddr,
}

impl Servers {
    /// Starts a server with a site, and proxyd with the result of its migration, and waits until both listen.
    pub(crate) fn start(peer: &Peer, site: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        write_files(folder.path());
        let upstream = upstream::start();
        let closed = closed_port();
        let ports = [free_port(), free_port()];
        let [theirs, ours] = ports.map(|port| {
            site.replace("PORT", &port.to_string())
                .replace("UPSTREAM", &upstream.address().to_string())
                .replace("CLOSED", &closed.to_string())
                .replace("ROOT", &folder.path().join("www").display().to_string())
        });
        let process = Process::start(peer, folder, &theirs);
        let proxyd = proxyd(peer, &ours);
        let servers = Self {
            peer: process,
            _proxyd: proxyd,
            upstream,
            ports,
            closed,
        };
        for port in ports {
            servers.wait_for(port);
        }
        servers
    }

    /// The ports of the server and of proxyd.
    pub(crate) fn ports(&self) -> [u16; 2] {
        self.ports
    }

    /// The address of the target that answers.
    pub(crate) fn target(&self) -> SocketAddr {
        self.upstream.address()
    }

    /// The address of the target that refuses connections.
    pub(crate) fn closed(&self) -> SocketAddr {
        self.closed
    }

    /// Sends a request to one of the servers.
    pub(crate) fn exchange(&self, port: u16, request: &Request) -> Exchange {
        let before = self.upstream.requests().len();
        let mut client = RawClient::connect(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
        client.send(request.bytes(port));
        let rest = client.rest();
        let (bytes, _) = rest.unwrap_or_else(|broken| panic!("{request}: {broken}"));
        let seen = self.upstream.requests();
        Exchange::new(port, &bytes, seen.get(before..).unwrap_or_default())
    }

    fn wait_for(&self, port: u16) {
        let mut attempts = EVENT_TIMEOUT.as_millis() / PAUSE.as_millis();
        while let Err(error) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) {
            let log = fs::read_to_string(self.peer.folder.path().join("log"));
            assert!(0 < attempts, "{port}: {error}: {log:?}");
            attempts = attempts.saturating_sub(1);
            park_timeout(PAUSE);
        }
    }
}

impl Process {
    fn start(peer: &Peer, folder: TempDir, site: &str) -> Self {
        let file = folder.path().join("configuration");
        fs::write(&file, (peer.configuration)(site, folder.path())).unwrap();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let child = (peer.command)(&file, folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn();
        let child = child.expect("`cargo xtask setup` installs it");
        Self { child, folder }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        // The main process ends its workers.
        _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        drop(self.child.wait());
    }
}

fn proxyd(peer: &Peer, site: &str) -> Proxyd {
    let source = Source {
        name: "site".to_owned(),
        text: (peer.migrated)(site),
    };
    let included = |name: &str| {
        let text = fs::read_to_string(name).ok()?;
        let name = name.to_owned();
        Some(vec![Source { name, text }])
    };
    let migrated = migrate(peer.language, &source, &included);
    let migrated = migrated.unwrap_or_else(|error| panic!("{error}"));
    Launch::new(BINARY, &migrated.text).spawn()
}

/// Files of the folder `www`, and users outside of it.
fn write_files(folder: &Path) {
    // Workers of an nginx that was started by root are of another user.
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
    let root = folder.join("www");
    for name in ["assets", "spa", "dir", "shared"] {
        fs::create_dir_all(root.join(name)).unwrap();
    }
    let script = "x".repeat(3_000);
    for (name, text) in [
        ("index.html", "<h1>home</h1>"),
        ("404.html", "<h1>no page</h1>"),
        ("50x.html", "<h1>down</h1>"),
        ("spa/index.html", "spa"),
        ("dir/index.html", "dir"),
        ("assets/a.css", "body {}"),
        ("shared/a.css", "p {}"),
        ("assets/b.js", &script),
        ("a b.txt", "space"),
        ("data.json", "{}"),
        ("favicon.ico", "icon"),
        (".secret", "secret"),
    ] {
        fs::write(root.join(name), text).unwrap();
    }
    fs::write(folder.join("users"), USERS).unwrap();
    fs::write(folder.join("503.http"), ERROR_PAGE).unwrap();
}
