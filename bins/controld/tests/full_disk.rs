//! Output and log on a full disk.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use control_testkit::{Client, until};
use proxy_testkit::free_port;
use std::fs::File;
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");

fn full_disk() -> Stdio {
    let file = File::options().write(true).open("/dev/full");
    file.unwrap().into()
}

fn run(line: &str, output: Stdio) -> Output {
    let mut command = Command::new(CONTROLD);
    command.args(line.split(' ')).stdout(output);
    let process = command.stderr(Stdio::piped()).spawn().unwrap();
    process.wait_with_output().unwrap()
}

#[test]
fn output_that_does_not_fit_on_the_disk_is_an_error_and_a_closed_pipe_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let state = format!("--data-dir {}", folder.path().display());
    let create = format!("admin create {state} --email ann@example.com --name Ann");
    assert!(run(&create, Stdio::piped()).status.success());
    for line in [
        "--help",
        "--version",
        "admin create --help",
        "ctl manual",
        "ctl completions bash",
        "ctl --help",
    ]
    .map(str::to_owned)
    .into_iter()
    .chain([
        format!("check {state}"),
        format!("audit verify {state}"),
        format!("key prune {state}"),
        format!("key rotate {state}"),
        format!("admin end-sessions {state}"),
        format!("admin set-password {state} --email ann@example.com"),
        format!("admin end-credentials {state}"),
    ]) {
        let full = run(&line, full_disk());
        assert_eq!(full.status.code(), Some(1), "{line}: {full:?}");
        let stderr = String::from_utf8_lossy(&full.stderr);
        let text = "standard output: No space left on device";
        assert!(stderr.contains(text), "{line}: {stderr}");

        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let closed = run(&line, writer.into());
        assert!(closed.status.success(), "{line}: {closed:?}");
    }
}

#[test]
fn a_control_plane_whose_output_is_on_a_full_disk_serves() {
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut process = Command::new(CONTROLD)
        .args(["--listen", &format!("127.0.0.1:{port}"), "--data-dir"])
        .arg(folder.path())
        .env("RUST_LOG", "debug")
        .stdout(full_disk())
        .stderr(full_disk())
        .spawn()
        .unwrap();
    until("it serves", || {
        TcpStream::connect(("127.0.0.1", port)).is_ok()
    });

    let client = Client::new(&format!("http://127.0.0.1:{port}"));
    for _ in 0..3 {
        assert_eq!(client.get("/health").status, 200);
        assert_eq!(client.get("/api/v1/users/me").status, 401);
    }

    process.kill().unwrap();
    process.wait().unwrap();
}
