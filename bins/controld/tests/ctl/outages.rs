//! `controld ctl` with a control plane that answers late, incompletely, or with refusals.

use super::{CONTROLD, Done, done};
use control_testkit::{Received, Receiver, empty};
use serde_json::{Value, json};
use std::fs;
use std::process::{Command, Stdio};
use tempfile::TempDir;

const PROJECT: &str = "0190a0a0-0000-7000-8000-000000000001";
const ROLLOUT: &str = "0190a0a0-0000-7000-8000-000000000002";
/// A connection that ends without a response.
const LOST: &str = "";

fn command(url: &str) -> Command {
    let mut command = Command::new(CONTROLD);
    command
        .arg("ctl")
        .env_clear()
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env("CONTROLD_URL", url)
        .env("CONTROLD_API_KEY", "x".repeat(43));
    command
}

fn ctl(server: &Receiver, arguments: &[&str]) -> Done {
    done(command(&server.url()).args(arguments).output().unwrap())
}

fn answer(status: &str, body: &Value) -> String {
    let body = body.to_string();
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    )
}

fn refusal(code: &str) -> String {
    let error = json!({"code": code, "message": "not now", "correlation_id": "c"});
    answer("409 Conflict", &json!({"error": error}))
}

fn rollout(state: &str) -> String {
    let rollout = json!({"id": ROLLOUT, "state": state, "nodes": 1, "batches": []});
    answer("200 OK", &rollout)
}

fn status(server: &Receiver, timeout: &str) -> Done {
    let status = ["rollout", "status", ROLLOUT, "--project", PROJECT];
    ctl(
        server,
        &[&status[..], &["--wait", "--timeout", timeout]].concat(),
    )
}

#[test]
fn a_wait_outlives_an_outage() {
    let server = Receiver::start(|number, _| {
        Some(match number {
            0 => rollout("running"),
            1 | 4 | 6 => LOST.to_owned(),
            2 | 5 => empty("502 Bad Gateway"),
            3 => empty("504 Gateway Timeout"),
            _ => rollout("completed"),
        })
    });
    let followed = status(&server, "60");
    assert_eq!(followed.code, 0, "{}", followed.error);
    assert!(followed.out.contains("completed"), "{}", followed.out);
    assert_eq!(server.received().len(), 8);
    let gone = Receiver::start(|_, _| {
        let error = json!({"code": "NOT_FOUND", "message": "no", "correlation_id": "c"});
        Some(answer("404 Not Found", &json!({"error": error})))
    });
    let refused = status(&gone, "60");
    assert_eq!((refused.code, gone.received().len()), (1, 1));
}

#[test]
fn a_wait_ends_on_time_with_the_last_failure() {
    let failing = Receiver::start(|number, _| {
        Some(match number {
            0 => rollout("running"),
            _ => empty("502 Bad Gateway"),
        })
    });
    let late = status(&failing, "8");
    assert_eq!(late.code, 1);
    for part in ["still running after 8 s", "answered 502"] {
        assert!(late.error.contains(part), "{part}: {}", late.error);
    }
    // It would wait for a minute for each response. The first one arrives in time on a busy machine too.
    let silent = Receiver::start(|number, _| (number == 0).then(|| rollout("running")));
    let late = status(&silent, "10");
    assert_eq!(late.code, 1);
    let reported = "still running after 10 s";
    assert!(late.error.contains(reported), "{}", late.error);
    let unknown = Receiver::start(|_, _| None);
    let late = status(&unknown, "0");
    assert_eq!(late.code, 1);
    let reported = "its state is unknown after 0 s";
    assert!(late.error.contains(reported), "{}", late.error);
}

#[test]
fn a_wait_for_an_approval_says_how_it_is_given_and_ends_on_time() {
    let server = Receiver::start(|_, _| Some(rollout("awaiting_approval")));
    let late = status(&server, "5");
    assert_eq!(late.code, 1, "{}", late.out);
    let command = format!("`controld ctl rollout approve {ROLLOUT}`");
    assert_eq!(late.out.matches(&command).count(), 1, "{}", late.out);
    let reported = "still awaiting_approval after 5 s";
    assert!(late.error.contains(reported), "{}", late.error);
    assert!(server.received().len() > 1, "it asked once");
    let server = Receiver::start(|number, _| {
        Some(match number {
            0 | 1 => rollout("awaiting_approval"),
            _ => rollout("completed"),
        })
    });
    let approved = status(&server, "60");
    assert_eq!(approved.code, 0, "{}", approved.error);
}

#[test]
fn a_lost_write_is_sent_again_with_its_key() {
    let server = Receiver::start(|number, _| {
        Some(match number {
            0 => LOST.to_owned(),
            1 => refusal("IDEMPOTENCY_CONFLICT"),
            _ => answer("201 Created", &json!({"id": ROLLOUT, "name": "core"})),
        })
    });
    let create = ["project", "create", "--name", "core", "--org", PROJECT];
    let made = ctl(&server, &create);
    assert_eq!(made.code, 0, "{}", made.error);
    let keys: Vec<Received> = server.received();
    let keys: Vec<&str> = keys
        .iter()
        .map(|one| one.header("idempotency-key"))
        .collect();
    assert_eq!(keys.len(), 3);
    assert!(!keys[0].is_empty());
    assert!(keys.iter().all(|key| *key == keys[0]), "{keys:?}");
    // The first response is cut.
    let server = Receiver::start(|number, _| {
        let whole = answer("201 Created", &json!({"id": ROLLOUT, "name": "core"}));
        let length = if number == 0 {
            whole.len() - 3
        } else {
            whole.len()
        };
        whole.get(..length).map(str::to_owned)
    });
    let made = ctl(&server, &create);
    assert_eq!(made.code, 0, "{}", made.error);
    assert_eq!(server.received().len(), 2);
}

#[test]
fn a_link_is_used_once() {
    let server = Receiver::start(|_, _| Some(LOST.to_owned()));
    let accept = ["invitation", "accept", "--user-name", "Bob"];
    let lost = ctl(
        &server,
        &[&accept[..], &["--password", "correct horse"]].concat(),
    );
    assert_eq!((lost.code, server.received().len()), (1, 1));
}

/// A control plane with this response to the start of a rollout, and leaves the rollout in this state.
fn deploying(start: String, state: &'static str, cancel: String) -> Receiver {
    Receiver::start(move |_, request| {
        let line = &request.line;
        let list = |items: Value| answer("200 OK", &json!({"items": items}));
        Some(if line.contains("/bundles/preview") {
            let preview = json!({"digest": "d", "diagnostics": [], "comparisons": [],
                "other_nodes": 0, "unordered_nodes": 1});
            answer("200 OK", &preview)
        } else if line.starts_with("GET") && line.contains('?') {
            list(json!([]))
        } else if line.contains("/bundles") {
            answer(
                "201 Created",
                &json!({"id": PROJECT, "name": "d", "state": "signed"}),
            )
        } else if line.contains("/start") {
            start.clone()
        } else if line.contains("/cancel") {
            cancel.clone()
        } else if line.starts_with("GET") {
            rollout(state)
        } else {
            rollout("planned")
        })
    })
}

fn deploy(server: &Receiver) -> Done {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("proxy.kdl"), "listeners {}\n").unwrap();
    let folder = folder.path().display().to_string();
    ctl(server, &["deploy", &folder, "--project", PROJECT])
}

#[test]
fn no_planned_rollout_is_left() {
    let refused = || refusal("CONFLICT");
    let cancelled = || rollout("cancelled");
    for (start, state, cancel, code, part) in [
        (refused(), "planned", cancelled(), 1, "it was cancelled"),
        (
            LOST.to_owned(),
            "planned",
            cancelled(),
            1,
            "it was cancelled",
        ),
        (
            refused(),
            "planned",
            refused(),
            1,
            "its cancellation failed too",
        ),
        (LOST.to_owned(), "running", cancelled(), 0, ""),
    ] {
        let server = deploying(start, state, cancel);
        let deployed = deploy(&server);
        assert_eq!(deployed.code, code, "{}", deployed.error);
        assert!(deployed.error.contains(part), "{part}: {}", deployed.error);
        let requests = server.received();
        let mut requests = requests.iter();
        assert_eq!(requests.any(|one| one.line.contains("/cancel")), code == 1);
        if code == 1 {
            assert!(deployed.error.contains(ROLLOUT), "{}", deployed.error);
        }
    }
}

#[test]
fn a_deployment_that_another_operator_ended_is_not_done() {
    for (start, state) in [
        (LOST.to_owned(), "cancelled"),
        (rollout("running"), "cancelled"),
        (rollout("running"), "rolled_back"),
        (rollout("running"), "rolling_back"),
        (rollout("running"), "paused"),
    ] {
        let server = deploying(start, state, refusal("CONFLICT"));
        let deployed = deploy(&server);
        assert_eq!(deployed.code, 1, "{state}: {}", deployed.out);
        let part = format!("{ROLLOUT}: {state}");
        assert!(deployed.error.contains(&part), "{part}: {}", deployed.error);
    }
}

/// A control plane with a managed certificate, one in use, and one that is neither.
fn certificates() -> Receiver {
    Receiver::start(|_, request| {
        let line = &request.line;
        let items = if line.contains("/managed-certificates") {
            json!([{"id": "m", "name": "auto", "certificate": "0190a0a0-0000-7000-8000-00000000000a"}])
        } else {
            json!([
                {"id": "0190a0a0-0000-7000-8000-00000000000a", "name": "managed"},
                {"id": "0190a0a0-0000-7000-8000-00000000000b", "name": "used"},
                {"id": "0190a0a0-0000-7000-8000-00000000000c", "name": "second"},
                {"id": "0190a0a0-0000-7000-8000-00000000000d", "name": "old"},
            ])
        };
        Some(if line.starts_with("GET") {
            answer("200 OK", &json!({"items": items}))
        } else if line.contains("00000000000d") {
            "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n".to_owned()
        } else {
            refusal("CONFLICT")
        })
    })
}

#[test]
fn a_prune_goes_on_after_refusals_and_lists_them() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("all.json");
    let prune = |server: &Receiver, wanted: Value, flags: &[&str]| {
        fs::write(&file, wanted.to_string()).unwrap();
        let file = file.to_str().unwrap();
        let apply = ["apply", "-f", file, "--project", PROJECT, "--prune"];
        ctl(server, &[&apply[..], flags].concat())
    };
    let server = certificates();
    let done = prune(&server, json!({"certificates": []}), &[]);
    assert_eq!(done.code, 1, "{}", done.out);
    assert_eq!(
        done.out,
        "certificate/managed stays: managed certificate auto renews it\ncertificate/old deleted\n"
    );
    for part in [
        "2 not deleted",
        "\n  certificate/used: CONFLICT",
        "\n  certificate/second: CONFLICT",
    ] {
        assert!(done.error.contains(part), "{part}: {}", done.error);
    }
    let deleted = server.received();
    let deleted = deleted.iter().filter(|one| one.line.starts_with("DELETE"));
    assert!(
        !deleted
            .map(|one| &one.line)
            .any(|line| line.contains("00000000000a"))
    );

    let server = certificates();
    let done = prune(&server, json!({"certificates": []}), &["--dry-run"]);
    assert_eq!(done.code, 0, "{}", done.error);
    assert!(
        done.out.starts_with("certificate/managed stays: "),
        "{}",
        done.out
    );
    assert!(
        done.out.contains("unless a node's bundle names it"),
        "{}",
        done.out
    );
    let both = json!({"certificates": [], "managed-certificates": []});
    let done = prune(&server, both, &["--dry-run"]);
    assert!(
        done.out.contains("\ncertificate/managed would be deleted"),
        "its managed certificate would be deleted before: {}",
        done.out
    );
    assert!(
        server
            .received()
            .iter()
            .all(|one| one.line.starts_with("GET"))
    );
}

#[test]
fn names_of_a_file_are_checked_before_the_first_change() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("all.json");
    let server = Receiver::answering("500 Internal Server Error");
    for (wanted, part) in [
        (
            json!({"projects": [{"name": "a"}, {}]}),
            "an item has no name",
        ),
        (
            json!({"projects": [{"name": "a"}, {"name": "a"}]}),
            "have the name a",
        ),
        (json!({"projects": ["a"]}), "an item has no name"),
    ] {
        fs::write(&file, wanted.to_string()).unwrap();
        let refused = ctl(&server, &["apply", "-f", file.to_str().unwrap()]);
        assert_eq!(refused.code, 2, "{}", refused.error);
        assert!(refused.error.contains(part), "{}", refused.error);
    }
    assert!(server.received().is_empty());
}

#[test]
fn a_closed_standard_error_changes_no_exit_code() {
    let server = Receiver::start(|_, _| Some(refusal("CONFLICT")));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(&server.url());
    command
        .args(["whoami"])
        .stdout(Stdio::null())
        .stderr(writer);
    assert_eq!(command.status().unwrap().code(), Some(1));
}
