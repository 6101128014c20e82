//! `proxyd top`: text output, and the screen on a pseudo-terminal.

use crate::support::{BINARY, Config};
use proxy_testkit::{EVENT_TIMEOUT, Proxyd, Upstream, closed_port, get};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

fn top(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command
        .env_remove("PROXYD_CONFIG")
        .arg("top")
        .args(arguments);
    command.output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns the words of the line that begins with a name.
fn row<'p>(page: &'p str, name: &str) -> Vec<&'p str> {
    let mut rows = page
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.first() == Some(&name));
    row.unwrap_or_else(|| panic!("no row {name}:\n{page}"))
}

/// Starts a process that has served three requests, on the routes of a target.
fn busy(upstream: &Upstream, top: &str) -> Proxyd {
    let proxyd = Config::to(upstream).top(top).start();
    for _ in 0..3 {
        let response = proxyd.connect().ask(get("/", &[]));
        assert_eq!(response.status, 200);
        drop(proxyd.access_record(&response.correlation_id()));
    }
    proxyd
}

#[test]
fn a_page_has_routes_upstreams_and_limits() {
    let upstream = Upstream::saying("hi");
    let proxyd = busy(&upstream, "");
    let address = proxyd.admin_address().to_string();
    let shown = top(&["--admin", &address, "--once"]);
    assert!(shown.status.success(), "{shown:?}");
    let page = text(&shown.stdout);
    assert!(page.contains("since the start: "), "{page}");
    let target = upstream.address().to_string();
    let health = row(&page, &target);
    assert_eq!(health.get(1), Some(&"up"), "{page}");
    let limit = row(&page, "max-in-flight-requests");
    assert_eq!(limit.get(2), Some(&"10000"), "{page}");
    let mut routes = page
        .lines()
        .skip_while(|line| !line.starts_with("route "))
        .skip(1);
    let requests = routes.next().unwrap_or_default().split_whitespace().last();
    assert_eq!(requests, Some("3"), "{page}");
    // Standard output is not a terminal.
    let again = top(&["--admin", &address]);
    assert!(
        text(&again.stdout).contains("since the start: "),
        "{again:?}"
    );
}

#[test]
fn the_configuration_names_the_interface_and_its_token() {
    let (upstream, folder) = (Upstream::saying("hi"), tempfile::tempdir().unwrap());
    let socket = folder.path().join("admin.sock");
    let admin = format!(
        "admin {{ address \"off\"; unix-socket \"{}\" }}",
        socket.display()
    );
    let proxyd = busy(&upstream, &admin);
    let file = proxyd.config().display().to_string();
    let shown = top(&["--config", &file]);
    assert!(
        text(&shown.stdout).contains("since the start: "),
        "{shown:?}"
    );

    let token = folder.path().join("token");
    fs::write(&token, "a-token-of-26-characters-x\n").unwrap();
    let token = token.display().to_string();
    let admin = format!("admin {{ address \"127.0.0.1:0\"; token-file \"{token}\" }}");
    let proxyd = busy(&upstream, &admin);
    let address = proxyd.admin_address().to_string();
    let shown = top(&["--admin", &address, "--token-file", &token]);
    assert!(
        text(&shown.stdout).contains("since the start: "),
        "{shown:?}"
    );
    let refused = top(&["--admin", &address]);
    assert_eq!(refused.status.code(), Some(1), "{refused:?}");
    assert!(
        text(&refused.stderr).contains("--token-file"),
        "{refused:?}"
    );
}

#[test]
fn an_interface_that_is_not_there_is_named() {
    let address = closed_port().to_string();
    let shown = top(&["--admin", &address]);
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    assert!(text(&shown.stderr).contains(&address), "{shown:?}");
    let upstream = Upstream::saying("hi");
    let proxyd = Config::to(&upstream).start();
    let shown = top(&["--admin", &proxyd.address().to_string()]);
    assert_eq!(shown.status.code(), Some(1), "{shown:?}");
    assert!(
        text(&shown.stderr).contains("is not of proxyd"),
        "{shown:?}"
    );
    for arguments in [
        &["--admin", "localhost:9090"][..],
        &["--admin", "unix:a"],
        &["page"],
    ] {
        assert_eq!(top(arguments).status.code(), Some(2), "{arguments:?}");
    }
}

/// `proxyd top` on a pseudo-terminal of the program `script`.
struct Screen {
    script: Child,
    keys: ChildStdin,
    chunks: Receiver<Vec<u8>>,
    drawn: String,
}

impl Screen {
    fn start(address: &str) -> Self {
        let mut command = Command::new("script");
        command.args(["--quiet", "--return", "--command"]);
        command
            .arg(format!("exec {BINARY} top --admin {address}"))
            .arg("/dev/null");
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = command.spawn().unwrap();
        let (keys, mut output) = (script.stdin.take().unwrap(), script.stdout.take().unwrap());
        let (sender, chunks) = channel();
        thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut bytes) {
                if sender.send(bytes[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            script,
            keys,
            chunks,
            drawn: String::new(),
        }
    }

    /// Waits until a text was drawn, and discards the output before it.
    #[track_caller]
    fn wait_for(&mut self, part: &str) {
        loop {
            if let Some((_, rest)) = self.drawn.split_once(part) {
                self.drawn = rest.to_owned();
                return;
            }
            match self.chunks.recv_timeout(EVENT_TIMEOUT) {
                Ok(chunk) => self.drawn.push_str(&text(&chunk)),
                Err(error) => panic!("{part:?} was not drawn ({error}): {:?}", self.drawn),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the process on the pseudo-terminal.
    fn process(&self) -> Pid {
        let script = self.script.id();
        let children =
            fs::read_to_string(format!("/proc/{script}/task/{script}/children")).unwrap();
        let child = children.split_whitespace().next().unwrap();
        Pid::from_raw(child.parse().unwrap()).unwrap()
    }

    /// Returns the exit code of the program, after the terminal was restored.
    #[track_caller]
    fn end(mut self) -> Option<i32> {
        // Shows the cursor, and returns to the normal screen.
        self.wait_for("\x1b[?25h\x1b[?1049l");
        self.script.wait().unwrap().code()
    }
}

#[test]
fn a_terminal_shows_views_by_keys_and_is_restored() {
    let upstream = Upstream::saying("hi");
    let proxyd = busy(&upstream, "");
    let mut screen = Screen::start(&proxyd.admin_address().to_string());
    screen.wait_for("\x1b[?1049h");
    screen.wait_for("[routes]");
    screen.press("\t");
    screen.wait_for("[upstreams]");
    screen.wait_for(&upstream.address().to_string());
    screen.press("3");
    screen.wait_for("[limits]");
    screen.press("\x1b[C");
    screen.wait_for("[time]");
    screen.press("\x1b[Zs");
    screen.wait_for("[limits]");
    screen.wait_for("sorted by failures");
    // Figures of an interval are shown a second later.
    screen.wait_for("now: ");
    screen.press("q");
    assert_eq!(screen.end(), Some(0));
}

#[test]
fn a_signal_restores_the_terminal() {
    let upstream = Upstream::saying("hi");
    let proxyd = busy(&upstream, "");
    for signal in [Signal::TERM, Signal::HUP, Signal::INT] {
        let mut screen = Screen::start(&proxyd.admin_address().to_string());
        screen.wait_for("[routes]");
        kill_process(screen.process(), signal).unwrap();
        assert_eq!(screen.end(), Some(0), "{signal:?}");
    }
}

#[test]
fn a_proxy_that_ends_is_shown_as_a_fault() {
    let upstream = Upstream::saying("hi");
    let mut proxyd = busy(&upstream, "");
    let mut screen = Screen::start(&proxyd.admin_address().to_string());
    screen.wait_for("[routes]");
    proxyd.terminate();
    assert!(proxyd.wait().success());
    screen.wait_for("no answer from ");
    screen.press("\x03");
    assert_eq!(screen.end(), Some(0));
}
