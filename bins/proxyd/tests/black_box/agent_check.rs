//! `proxyd agent check`: text, JSON and exit codes.

use crate::support::BINARY;
use proxy_agent_kit::{Agent, AgentFailure, Answer, RequestHeaders, allow, challenge, serve};
use std::future::pending;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::thread;
use tempfile::TempDir;

/// Agent that allows requests with a password.
struct TestAgent;

impl Agent for TestAgent {
    type State = ();

    fn name(&self) -> &'static str {
        "doorman/1"
    }

    async fn request_headers(
        &self,
        request: &RequestHeaders<'static>,
        (): &mut (),
    ) -> Result<Answer, AgentFailure> {
        let mut headers = request.headers.iter();
        let is_known = headers
            .any(|header| header.name() == "x-password" && header.value().as_bytes() == b"secret");
        Ok(if is_known {
            allow()
        } else {
            challenge("Password", "no password")
        })
    }
}

fn socket(folder: &TempDir) -> PathBuf {
    folder.path().join("agent.sock")
}

/// Serves the agent on a thread until the test ends.
fn start(path: &Path) {
    let listening = path.to_path_buf();
    thread::spawn(move || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().build().unwrap();
        runtime
            .block_on(serve(TestAgent, listening, pending()))
            .unwrap();
    });
    while UnixStream::connect(path).is_err() {
        thread::yield_now();
    }
}

fn check(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["agent", "check"]).args(arguments);
    command.output().unwrap()
}

#[test]
fn a_correct_agent_passes_case_by_case_with_exit_code_0() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket(&folder);
    start(&path);
    let output = check(&[path.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(
        text.contains("ok     handshake: a hello is answered"),
        "{text}"
    );
    assert!(text.contains("decided challenge"), "{text}");
    assert!(text.trim_end().ends_with(" passed, 0 failed"), "{text}");

    let with = check(&[path.to_str().unwrap(), "-H", "X-Password: secret", "--json"]);
    assert_eq!(with.status.code(), Some(0));
    let report: serde_json::Value = serde_json::from_slice(&with.stdout).unwrap();
    assert_eq!(report["failed"], 0);
    let cases = report["cases"].as_array().unwrap();
    let head = cases.iter().find(|case| case["name"] == "request-headers");
    assert_eq!(head.unwrap()["reason"], "decided allow");
}

#[test]
fn a_broken_agent_fails_with_its_reason_and_exit_code_1() {
    let folder = tempfile::tempdir().unwrap();
    let path = socket(&folder);
    let listener = UnixListener::bind(&path).unwrap();
    thread::spawn(move || listener.incoming().for_each(drop));
    let output = check(&[path.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("FAILED handshake: "), "{text}");
    assert!(text.contains("0 passed, 1 failed"), "{text}");
}

#[test]
fn a_wrong_use_of_the_check_has_exit_code_2() {
    for arguments in [
        &[][..],
        &["/nowhere", "-H", "no colon"],
        &["/nowhere", "--timeout-ms", "0"],
    ] {
        assert_eq!(check(arguments).status.code(), Some(2), "{arguments:?}");
    }
}
