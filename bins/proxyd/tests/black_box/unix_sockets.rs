//! Listeners on Unix sockets.
#![expect(clippy::disallowed_methods, reason = "a test waits for a result")]

use crate::support::{BINARY, Config, target};
use proxy_testkit::{
    EVENT_TIMEOUT, End, Launch, Proxyd, RawClient, Reload, Upgrade, Upstream, get,
};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Instant;
use tempfile::TempDir;

/// A folder for a socket.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("proxy.sock")
    }

    fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.0.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    /// Waits until the disk thread of the process has removed the file.
    #[track_caller]
    fn wait_until_empty(&self) {
        let end = Instant::now() + EVENT_TIMEOUT;
        while !self.names().is_empty() {
            assert!(Instant::now() < end, "{:?} stay", self.names());
            thread::yield_now();
        }
    }

    /// Formats a configuration with a listener on this socket only.
    fn config(&self, upstream: &Upstream, listener: &str) -> String {
        format!(
            "listeners {{ listener \"main\" {{ address \"unix:{}\"; {listener} }} }}\n\
             routes {{ route \"all\" {{ upstream \"u\" }} }}\n\
             upstreams {{ upstream \"u\" {{ {} }} }}\nworker-threads 3",
            self.path().display(),
            target(upstream)
        )
    }

    fn ask(&self) -> String {
        RawClient::connect_unix(&self.path())
            .ask(get("/", &[]))
            .text()
    }
}

fn startup_error(proxyd: &mut Proxyd) -> String {
    assert_eq!(proxyd.wait().code(), Some(1));
    proxyd.stderr().to_the_end().join("\n")
}

fn is_socket(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|file| file.file_type().is_socket())
}

#[test]
fn a_unix_socket_is_listened_on() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let mut proxyd = Proxyd::start(BINARY, &place.config(&upstream, ""));

    let mut clients: Vec<_> = (0..12)
        .map(|_| RawClient::connect_unix(&place.path()))
        .collect();
    for client in &mut clients {
        for _ in 0..2 {
            assert_eq!(client.ask(get("/", &[])).text(), "hi");
        }
    }
    let mode = fs::metadata(place.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o666);

    proxyd.terminate();
    for client in &mut clients {
        assert_eq!(client.end(), End::Closed);
    }
    drop(clients);
    assert!(proxyd.wait().success());
    assert!(place.names().is_empty(), "the file goes with the process");
}

#[test]
fn a_client_by_a_file_is_on_this_host() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let claim = [("X-Forwarded-For", "9.9.9.9")];
    let proxyd = Proxyd::start(BINARY, &place.config(&upstream, ""));
    let answer = RawClient::connect_unix(&place.path()).ask(get("/", &claim));

    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("x-forwarded-for"), Some("127.0.0.1"));
    let record = proxyd.access_record(&answer.correlation_id());
    assert_eq!(record.text("client_ip"), "127.0.0.1");

    let trusting = place.config(&upstream, r#"trusted-proxies "127.0.0.1""#);
    assert_eq!(proxyd.reload(&trusting), Reload::Applied);
    let answer = RawClient::connect_unix(&place.path()).ask(get("/", &claim));
    let record = proxyd.access_record(&answer.correlation_id());
    assert_eq!(record.text("client_ip"), "9.9.9.9");
}

#[test]
fn a_proxy_in_front_sets_the_client_over_a_unix_socket() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let listener = r#"proxy-protocol #true; trusted-proxies "127.0.0.1""#;
    let _proxyd = Proxyd::start(BINARY, &place.config(&upstream, listener));
    let mut client = RawClient::connect_unix(&place.path());

    client.send("PROXY TCP4 192.0.2.7 192.0.2.9 40000 443\r\n");
    assert_eq!(client.ask(get("/", &[])).text(), "hi");

    let seen = upstream.last_request();
    assert_eq!(seen.fields.get("x-forwarded-for"), Some("192.0.2.7"));
}

#[test]
fn the_socket_of_a_killed_process_is_replaced() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let kdl = place.config(&upstream, "");
    // A killed process does not remove its file.
    drop(Proxyd::start(BINARY, &kdl));
    assert!(is_socket(&place.path()));

    let mut proxyd = Proxyd::start(BINARY, &kdl);

    assert_eq!(place.ask(), "hi");
    assert_eq!(place.names(), ["proxy.sock"]);
    proxyd.quit();
    proxyd.wait();
    assert!(place.names().is_empty());
}

#[test]
fn neither_a_living_socket_nor_a_file_is_replaced() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let kdl = place.config(&upstream, "");
    let living = UnixListener::bind(place.path()).unwrap();
    let printed = startup_error(&mut Launch::new(BINARY, &kdl).spawn());
    assert!(
        printed.contains("another process listens there"),
        "{printed}"
    );
    assert!(printed.contains("proxyd.kdl:1:"), "{printed}");

    drop(living);
    fs::remove_file(place.path()).unwrap();
    fs::write(place.path(), "mine").unwrap();
    let printed = startup_error(&mut Launch::new(BINARY, &kdl).spawn());
    assert!(
        printed.contains("the path is a file, not a socket"),
        "{printed}"
    );
    assert_eq!(fs::read(place.path()).unwrap(), b"mine");
}

#[test]
fn a_reload_adds_and_removes_a_unix_socket() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let without = Config::to(&upstream);
    let address = place.path().display().to_string();
    let second = format!("listeners {{ listener \"file\" {{ address \"unix:{address}\" }} }}");
    let with = Config::to(&upstream).top(&second);
    let proxyd = without.start();

    for _ in 0..3 {
        assert_eq!(proxyd.reload(&with.kdl()), Reload::Applied);
        assert_eq!(place.ask(), "hi");
        // The second reload keeps the listener of the first.
        assert_eq!(proxyd.reload(&with.kdl()), Reload::Applied);
        assert_eq!(place.ask(), "hi");
        assert_eq!(proxyd.reload(&without.kdl()), Reload::Applied);
        place.wait_until_empty();
    }
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "hi");
}

#[test]
fn a_unix_socket_is_handed_over() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let kdl = place.config(&upstream, "");
    let mut proxyd = Proxyd::start(BINARY, &kdl);
    let mut early = RawClient::connect_unix(&place.path());

    for _ in 0..2 {
        assert_eq!(proxyd.upgrade(), Upgrade::Done);
        assert_eq!(place.ask(), "hi");
    }
    assert_eq!(early.ask(get("/", &[])).text(), "hi");
    proxyd.wait_for_former();

    // The exit of former processes has not removed the file.
    assert_eq!(place.ask(), "hi");
    assert_eq!(place.names(), ["proxy.sock"]);
    proxyd.terminate();
    assert!(proxyd.wait().success());
    assert!(place.names().is_empty());
}

#[test]
fn a_new_process_that_fails_leaves_the_file() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let mut proxyd = Proxyd::start(BINARY, &place.config(&upstream, ""));

    // The process adopts the socket, and then fails at the next listener.
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap();
    let second = format!("\nlisteners {{ listener \"x\" {{ address \"{port}\" }} }}");
    let admin = "\nadmin { address \"127.0.0.1:0\" }";
    let kdl = [&place.config(&upstream, ""), &second, admin].concat();
    fs::write(proxyd.config(), kdl).unwrap();

    assert!(matches!(proxyd.upgrade(), Upgrade::Failed(_)));
    assert_eq!(place.ask(), "hi");
}

#[test]
fn the_admin_interface_at_a_unix_socket_is_handed_over_too() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let path = place.path();
    let admin = format!(
        "admin {{ address \"127.0.0.1:0\"; unix-socket \"{}\" }}",
        path.display()
    );
    let mut proxyd = Config::to(&upstream).top(&admin).start();
    let ready = || {
        RawClient::connect_unix(&path)
            .ask(get("/ready", &[]))
            .status
    };
    assert_eq!(ready(), 200);

    assert_eq!(proxyd.upgrade(), Upgrade::Done);
    proxyd.wait_for_former();

    assert_eq!(ready(), 200);
    proxyd.terminate();
    assert!(proxyd.wait().success());
    assert!(place.names().is_empty());
}

#[test]
fn a_removed_socket_file_is_created_again() {
    let (place, upstream) = (Place::new(), Upstream::saying("hi"));
    let admin = place.0.path().join("admin.sock");
    let more = format!(
        "\nadmin {{ address \"off\"; unix-socket \"{}\" }}",
        admin.display()
    );
    let kdl = place.config(&upstream, "") + &more;
    let mut proxyd = Proxyd::start(BINARY, &kdl);
    let works = || {
        let ready = RawClient::connect_unix(&admin).ask(get("/ready", &[]));
        assert_eq!((place.ask().as_str(), ready.status), ("hi", 200));
        fs::remove_file(place.path()).unwrap();
        fs::remove_file(&admin).unwrap();
    };

    works();
    assert_eq!(proxyd.reload(&kdl), Reload::Applied);
    works();
    assert_eq!(proxyd.upgrade(), Upgrade::Done);
    proxyd.wait_for_former();
    works();
    proxyd.terminate();
    assert!(proxyd.wait().success());
    assert!(place.names().is_empty());
}

#[test]
fn a_socket_of_another_user_is_reported() {
    let place = Place::new();
    let living = UnixListener::bind(place.path()).unwrap();
    if !rustix::process::geteuid().is_root() {
        let printed = "skipped: another user's socket takes root\n";
        std::io::stderr()
            .lock()
            .write_all(printed.as_bytes())
            .unwrap();
        return;
    }
    let installed = crate::installed::Installed::new();
    let folder = installed.path().with_file_name("");
    for path in [place.0.path(), &folder] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    }
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o600)).unwrap();
    fs::copy(BINARY, folder.join("copy")).unwrap();
    let copy = folder.join("copy");
    installed.replace(&format!(
        "exec setpriv --reuid 65534 --regid 65534 --clear-groups {} \"$@\"",
        copy.display()
    ));
    let launch = Launch::new(installed.path(), &place.config(&Upstream::saying(""), ""));
    fs::set_permissions(launch.folder(), fs::Permissions::from_mode(0o755)).unwrap();

    let printed = startup_error(&mut launch.spawn());

    assert!(printed.contains("another user's"), "{printed}");
    drop(living);
}
