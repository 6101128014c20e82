//! A real PostgreSQL on a Unix socket, in a folder of its own.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop, and says why"
)]

use rustix::process::{Pid, Signal, geteuid, kill_process};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;
use tempfile::TempDir;

const DEADLINE: Duration = Duration::from_mins(1);
const READY: &str = "database system is ready to accept connections";
const SETTINGS: &[&str] = &[
    "listen_addresses=",
    "fsync=off",
    "full_page_writes=off",
    "synchronous_commit=off",
    "max_connections=200",
    "shared_buffers=16MB",
];
/// Ends the server and removes its folder as soon as the pipe from the test is closed.
const GUARD: &str = r#"
folder=$1; shift
"$@" <&- &
server=$!
cat >/dev/null
kill -QUIT $server
wait $server
rm -rf "$folder"
"#;

/// A running server. It ends with the process that started it, even if that is killed.
#[derive(Debug)]
pub struct Postgres {
    programs: PathBuf,
    folder: PathBuf,
    databases: AtomicU32,
    /// One for each start.
    guards: Vec<Child>,
}

impl Postgres {
    /// Starts a server on a copy of an empty cluster, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is not installed, or does not start in 60 seconds.
    pub fn start() -> Self {
        let programs = programs();
        let template = template(&programs);
        let folder = tempfile::tempdir()
            .expect("a temporary folder is created")
            .keep();
        copy(&template, &folder.join("data"));
        own(&folder, false);
        let mut started = Self {
            programs,
            folder,
            databases: AtomicU32::new(0),
            guards: Vec::new(),
        };
        started.launch();
        started
    }

    /// Ends the server as a crash does; the data stays.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn crash(&self) {
        let file = fs::read_to_string(self.folder.join("data/postmaster.pid"));
        let file = file.expect("a running server");
        let pid = file
            .lines()
            .next()
            .and_then(|line| line.trim().parse().ok());
        let pid = pid
            .and_then(Pid::from_raw)
            .expect("the process id is valid");
        kill_process(pid, Signal::KILL).expect("the process runs");
    }

    /// Starts the server again on the data that it left, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not start in 60 seconds.
    pub fn restart(&mut self) {
        self.launch();
    }

    fn launch(&mut self) {
        let server = [
            self.programs.join("postgres").into_os_string(),
            "-D".into(),
            self.folder.join("data").into_os_string(),
            "-k".into(),
            self.folder.clone().into_os_string(),
        ];
        let mut guard = unprivileged("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&self.folder)
            .args(server)
            .args(SETTINGS.iter().flat_map(|setting| ["-c", setting]))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the shell starts");
        let log = guard.stderr.take().expect("the stream is piped");
        self.guards.push(guard);
        let (sender, ready) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(log).lines().map_while(Result::ok) {
                // The receiver is dropped once the server is ready; the pipe must still be drained.
                drop(sender.send(line));
            }
        });
        let mut reported = Vec::new();
        while let Ok(line) = ready.recv_timeout(DEADLINE) {
            if line.contains(READY) {
                return;
            }
            reported.push(line);
        }
        panic!("PostgreSQL did not start:\n{}", reported.join("\n"));
    }

    /// Creates an empty database; returns its URL.
    ///
    /// # Panics
    ///
    /// If the server is gone.
    pub fn create_database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.psql("postgres", &format!("CREATE DATABASE {name}"));
        let folder = self.folder.display();
        format!("postgres:///{name}?host={folder}&user=postgres")
    }

    /// Runs one statement with `psql`; returns its output, columns separated by `|`.
    ///
    /// # Panics
    ///
    /// If the statement fails.
    pub fn psql(&self, database: &str, sql: &str) -> String {
        let output = Command::new(self.programs.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U"])
            .args(["postgres", "-d", database, "-c", sql, "-h"])
            .arg(&self.folder)
            .output()
            .expect("psql");
        let (out, error) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "{sql}: {error}");
        out
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        for guard in self.guards.iter_mut().rev() {
            drop(guard.stdin.take());
            drop(guard.wait());
        }
    }
}

/// The folder of the newest installed version.
fn programs() -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut folders: Vec<PathBuf> = versions
        .filter_map(|entry| Some(entry.ok()?.path().join("bin")))
        .filter(|folder| folder.join("postgres").is_file())
        .collect();
    folders.sort();
    folders.pop().unwrap_or_else(|| {
        panic!("PostgreSQL is not installed: run `cargo xtask setup`, or install `postgresql`")
    })
}

/// An empty cluster, created once and stored with the test programs: `initdb` takes a second.
fn template(programs: &Path) -> PathBuf {
    let program = std::env::current_exe().expect("the path of this program");
    let version = programs.parent().and_then(Path::file_name);
    let version = version
        .expect("a PostgreSQL version is installed")
        .to_string_lossy();
    let kept = program.with_file_name(format!("postgresql-{version}-cluster"));
    if kept.is_dir() {
        return kept;
    }
    let folder = tempfile::tempdir().expect("a temporary folder is created");
    own(folder.path(), false);
    let output = unprivileged(programs.join("initdb"))
        .args(["--no-sync", "--auth=trust", "--username=postgres"])
        .args(["--encoding=UTF8", "--locale=C", "-D"])
        .arg(folder.path().join("data"))
        .stdin(Stdio::null())
        .output()
        .expect("initdb");
    assert!(output.status.success(), "initdb: {}", text(&output.stderr));
    let beside =
        TempDir::new_in(kept.parent().expect("a folder")).expect("a temporary folder is created");
    copy(&folder.path().join("data"), &beside.path().join("data"));
    // Of concurrent test programs, the first to rename wins.
    drop(fs::rename(beside.path().join("data"), &kept));
    own(folder.path(), true);
    kept
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp failed");
}

/// PostgreSQL refuses to run as root: then it runs as the user of Debian's package.
fn unprivileged(program: impl AsRef<std::ffi::OsStr>) -> Command {
    if !geteuid().is_root() {
        return Command::new(program);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups"]);
    command.arg(program);
    command
}

/// Assigns a folder to the server's user, or back.
fn own(folder: &Path, back: bool) {
    if geteuid().is_root() {
        let user = if back { "root" } else { "postgres" };
        let done = Command::new("chown").arg(user).arg(folder).status();
        assert!(done.is_ok_and(|status| status.success()), "chown failed");
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().to_owned()
}
