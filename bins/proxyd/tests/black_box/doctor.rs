//! `proxyd doctor`: findings about a machine, and their severity.

use crate::support::BINARY;
use proxy_testkit::{Upstream, closed_port};
use serde_json::Value;
use std::fs;
use std::process::{Command, Output};

fn doctor(kdl: &str, more: &[&str]) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proxyd.kdl");
    fs::write(&file, kdl).unwrap();
    let mut command = Command::new(BINARY);
    command.env_remove("PROXYD_CONFIG").arg("doctor");
    command.arg("--config").arg(&file).args(more);
    command.output().unwrap()
}

fn configuration(listener: &str, target: &str) -> String {
    format!(
        r#"
        listeners {{ listener "main" {{ address "{listener}"; backlog 100 }} }}
        routes {{ route "all" {{ upstream "app" }} }}
        upstreams {{ upstream "app" {{ target "{target}" }} }}
        limits {{ max-total-connections 100 }}
        "#
    )
}

/// Returns the findings about a subject, as `severity: state`.
fn findings(output: &Output, subject: &str) -> Vec<String> {
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let all = report["findings"].as_array().unwrap().iter();
    let own = all.filter(|finding| finding["subject"] == subject);
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    own.map(|finding| {
        format!(
            "{}: {}",
            text(&finding["severity"]),
            text(&finding["state"])
        )
    })
    .collect()
}

#[test]
fn a_machine_that_can_serve_has_no_fault() {
    let upstream = Upstream::saying("hello");
    let target = upstream.address().to_string();

    let output = doctor(&configuration("127.0.0.1:0", &target), &["--json"]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert_eq!(
        findings(&output, &format!("target {target}")),
        ["ok: accepts connections"]
    );
    assert_eq!(
        findings(&output, "listener main"),
        ["ok: 127.0.0.1:0 can be bound"]
    );
}

#[test]
fn an_invalid_configuration_is_the_only_finding_in_both_forms() {
    let json = doctor("listeners {", &["--json"]);

    assert_eq!(json.status.code(), Some(1), "{json:?}");
    let report: Value = serde_json::from_slice(&json.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{report}");
    assert_eq!(findings[0]["severity"], "fault", "{report}");
    let text = doctor("listeners {", &[]);
    let printed = String::from_utf8_lossy(&text.stdout);
    assert!(printed.starts_with("fault    configuration "), "{printed}");
    assert!(String::from_utf8_lossy(&text.stderr).contains("proxyd.kdl"));
}

#[test]
fn a_port_in_use_and_a_dead_target_are_warnings() {
    let dead_address = closed_port().to_string();
    let busy = Upstream::saying("");
    let address = busy.address().to_string();

    let output = doctor(&configuration(&address, &dead_address), &[]);

    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains(&format!("warning  listener main: {address} is in use")));
    let dead = format!("warning  target {dead_address}: Connection refused");
    assert!(printed.contains(&dead), "{printed}");
    assert!(printed.contains("faults: 0, "), "{printed}");
}

#[test]
fn an_address_of_another_machine_is_a_fault() {
    let upstream = Upstream::saying("hello");
    let target = upstream.address().to_string();

    let output = doctor(&configuration("192.0.2.1:8080", &target), &["--json"]);

    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let found = findings(&output, "listener main");
    assert!(
        found
            .iter()
            .any(|found| found.starts_with("fault: 192.0.2.1:8080: ")),
        "{found:?}"
    );
}
