//! Output and files on a full disk, and output that its reader has closed.

use crate::support::{BINARY, Config};
use proxy_testkit::Upstream;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const CONFIGURATION: &str = r#"listeners {
    listener "main" {
        address "127.0.0.1:8080"
    }
}
routes {
    route "all" {
        upstream "app"
    }
}
upstreams {
    upstream "app" {
        target "127.0.0.1:3000"
    }
}
tests {
    test "all" {
        request "GET" "/"
        expect {
            route "all"
        }
    }
}
"#;
const RECORD: &str = r#"{"method":"GET","path":"/","host":"a.test","status":200}"#;

/// A folder with input files, and a command line for each command that prints.
struct Commands(tempfile::TempDir);

impl Commands {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("a.kdl", CONFIGURATION);
        write("b.kdl", &CONFIGURATION.replace(":3000", ":3001"));
        write("narrow.kdl", &CONFIGURATION.replace("    ", " "));
        write("access.log", RECORD);
        write("nginx.conf", "events {}\nhttp {}\n");
        Self(folder)
    }

    fn lines() -> [&'static str; 23] {
        [
            "--help",
            "help",
            "config --help",
            "--version",
            "--test --config a.kdl",
            "--test --verbose --config a.kdl",
            "--validate --config a.kdl",
            "config check a.kdl",
            "config check --json a.kdl",
            "config test a.kdl",
            "config test --json a.kdl",
            "config test --new a.kdl",
            "config fmt --check narrow.kdl",
            "config migrate a.kdl --output migrated.kdl",
            "config migrate nginx.conf --from nginx --output from-nginx.kdl",
            "explain --config a.kdl GET /",
            "explain --json --config a.kdl GET /",
            "diff a.kdl a.kdl",
            "diff --json a.kdl b.kdl",
            "replay access.log --old a.kdl --new b.kdl",
            "doctor --config a.kdl",
            "doctor --json --config a.kdl",
            "completions bash",
        ]
    }

    fn run(&self, line: &str, output: Stdio) -> Output {
        let mut command = Command::new(BINARY);
        command.env_remove("PROXYD_CONFIG").env_remove("RUST_LOG");
        command.current_dir(self.0.path());
        command.args(line.split(' ')).stdout(output);
        command
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
            .wait_with_output()
            .unwrap()
    }
}

fn full_disk() -> Stdio {
    File::options()
        .write(true)
        .open("/dev/full")
        .unwrap()
        .into()
}

#[test]
fn output_that_does_not_fit_on_the_disk_is_an_error() {
    let commands = Commands::new();
    let lines = Commands::lines();
    let more = [
        "init new.kdl --target=127.0.0.1:3000",
        "config fmt narrow.kdl",
    ];
    for line in lines.into_iter().chain(more) {
        let done = commands.run(line, full_disk());

        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{line}: {stderr}");
        assert!(
            stderr.contains("cannot write to standard output: No space left"),
            "{line}: {stderr}"
        );
    }
    // The file was formatted all the same.
    let formatted = fs::read_to_string(commands.0.path().join("narrow.kdl")).unwrap();
    assert_eq!(formatted, CONFIGURATION);
}

#[test]
fn a_page_of_top_that_does_not_fit_on_the_disk_is_an_error() {
    let proxyd = Config::to(&Upstream::saying("hello"))
        .top("admin { address \"127.0.0.1:0\" }")
        .start();
    let line = format!("top --once --admin {}", proxyd.admin_address());

    let done = Commands::new().run(&line, full_disk());

    assert_eq!(done.status.code(), Some(2), "{done:?}");
}

#[test]
fn a_reader_that_has_read_enough_is_not_an_error() {
    let commands = Commands::new();
    for line in Commands::lines() {
        let printed = commands.run(line, Stdio::piped());
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);

        let done = commands.run(line, writer.into());

        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(
            done.status.code(),
            printed.status.code(),
            "{line}: {stderr}"
        );
        assert_eq!(done.stderr, printed.stderr, "{line}");
    }
}

/// Runs a command that can create files, but not write to them.
fn without_room(folder: &Path, line: &str) -> Output {
    let script = format!("trap '' XFSZ; ulimit -f 0; exec '{BINARY}' {line}");
    let mut command = Command::new("sh");
    command.args(["-c", &script]).current_dir(folder);
    command.env_remove("PROXYD_CONFIG").output().unwrap()
}

#[test]
fn a_file_that_cannot_be_written_keeps_its_contents() {
    let Commands(folder) = Commands::new();
    let names = || -> BTreeSet<_> {
        let entries = fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = names();
    for line in [
        "config migrate a.kdl --output a.kdl",
        "config migrate a.kdl --output new.kdl",
        "config migrate nginx.conf --from nginx --output a.kdl",
        "config fmt narrow.kdl",
        "init new.kdl --target=127.0.0.1:3000",
    ] {
        let done = without_room(folder.path(), line);
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(1), "{line}: {stderr}");
        assert!(stderr.contains("cannot write"), "{line}: {stderr}");
        assert_eq!(names(), before, "{line}");
    }
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("a.kdl"), CONFIGURATION);
    assert_eq!(read("narrow.kdl"), CONFIGURATION.replace("    ", " "));
}

#[test]
fn a_file_without_recorded_requests_is_not_a_recording() {
    let commands = Commands::new();
    for line in [
        "replay a.kdl --old a.kdl --new a.kdl",
        "diff a.kdl a.kdl --traffic a.kdl",
    ] {
        let done = commands.run(line, Stdio::piped());
        let stderr = String::from_utf8_lossy(&done.stderr);
        assert_eq!(done.status.code(), Some(2), "{line}: {stderr}");
        assert!(stderr.contains("is a recorded request"), "{line}: {stderr}");
    }
}
