//! `proxyd diff`: comparison of two configurations.

use crate::support::BINARY;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use tempfile::TempDir;

const OLD: &str = r#"
listeners { listener "main" { address "127.0.0.1:8080" } }
routes {
    route "admin" { matches { path-prefix "/admin" }; upstream "back"; agents "sso" }
    route "site" { matches { path-prefix "/" }; upstream "front" }
}
upstreams {
    upstream "back" { target "127.0.0.1:3000" }
    upstream "front" { target "127.0.0.1:3001" }
}
agents { agent "sso" { unix-socket "/run/sso.sock"; failure-mode "closed" } }
"#;

/// Creates two configurations in a new folder.
fn files(old: &str, new: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("old", old), ("new", new)] {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("edge.kdl"), text).unwrap();
    }
    folder
}

fn diff(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.env_remove("PROXYD_CONFIG").arg("diff").args(words);
    command.args(["old", "new"].map(|name| folder.join(name).join("edge.kdl")));
    command.output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn configurations_that_answer_alike_are_the_same() {
    let reordered = OLD.replace(
        "route \"site\" {",
        "route \"site\" { priority 50; // last\n",
    );
    let output = diff(files(OLD, &reordered).path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    assert!(
        text(&output).contains("answered the same"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_route_order_that_bypasses_access_rules_is_a_risk() {
    let new = OLD.replace(
        "route \"site\" { matches",
        "route \"site\" { priority \"high\"; matches",
    );
    let folder = files(OLD, &new);
    let output = diff(folder.path(), &[]);
    let page = text(&output);
    assert_eq!(output.status.code(), Some(1), "{page}");
    for part in [
        "fewer-guards",
        "without agent sso",
        "admin (upstream back) -> site (upstream front)",
        "/admin/…",
        "routes that take no request",
        "routes.route[\"site\"].priority  50 -> 100",
    ] {
        assert!(page.contains(part), "{part} is not in:\n{page}");
    }
    let output = diff(folder.path(), &["--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["same"], false);
    assert_eq!(found["risks"][0]["class"], "fewer-guards");
    assert_eq!(found["unreachable_routes"], serde_json::json!(["admin"]));

    // The example is a request that both configurations treat differently.
    let example = &found["requests"][0]["example"];
    let explain = |name: &str| {
        let output = Command::new(BINARY)
            .args(["explain", "--json", "--config"])
            .arg(folder.path().join(name).join("edge.kdl"))
            .arg(example["method"].as_str().unwrap())
            .arg(example["url"].as_str().unwrap())
            .output()
            .unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        found["route"]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!([explain("old"), explain("new")], ["admin", "site"]);
}

#[test]
fn a_configuration_with_faults_cannot_be_compared() {
    let output = diff(files(OLD, "listeners { listner }").path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("listner"));
}

#[test]
fn a_file_with_other_contents_differs() {
    let with = OLD.replace(
        "upstream \"back\" {",
        "upstream \"back\" { tls { ca-file \"ca.pem\" };",
    );
    let folder = files(&with, &with);
    for name in ["old", "new"] {
        fs::write(folder.path().join(name).join("ca.pem"), "the same").unwrap();
    }
    let output = diff(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(0), "{}", text(&output));
    fs::write(folder.path().join("new/ca.pem"), "another").unwrap();
    let output = diff(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output).contains("ca.pem"), "{}", text(&output));
}

/// Creates two configurations with the static files of the folder `site`.
fn static_sites() -> TempDir {
    let text = r#"
listeners { listener "main" { address "127.0.0.1:8080" } }
routes {
    route "site" { matches { path-prefix "/" }; service-type "static"; static-files { root "site" } }
}
"#;
    let folder = files(text, text);
    for name in ["old", "new"] {
        let site = folder.path().join(name).join("site");
        fs::create_dir(&site).unwrap();
        fs::write(site.join("a.html"), "the same").unwrap();
    }
    folder
}

#[test]
fn files_of_served_folders_are_compared() {
    let folder = static_sites();
    assert_eq!(diff(folder.path(), &[]).status.code(), Some(0));
    for name in ["b.html", "c.html"] {
        fs::write(folder.path().join("new/site").join(name), "new").unwrap();
    }
    let output = diff(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output).contains("  site/b.html\n  site/c.html\n"),
        "{}",
        text(&output)
    );
}

#[test]
fn a_served_folder_that_cannot_be_compared_is_an_error() {
    let folder = static_sites();
    let site = folder.path().join("new/site");
    for number in 0..10_000 {
        fs::write(site.join(format!("{number}.html")), "").unwrap();
    }
    let output = diff(folder.path(), &[]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(
        message.contains("new/site: more than 10000 files") && message.contains("diff -rq"),
        "{message}"
    );

    fs::remove_dir_all(&site).unwrap();
    fs::write(&site, "").unwrap();
    let output = diff(folder.path(), &[]);
    let message = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("new/site` is not a folder"), "{message}");
}

#[test]
fn recorded_requests_are_weighted_by_how_often_they_occurred() {
    let new = OLD.replace("path-prefix \"/admin\"", "path-prefix \"/admin/\"");
    let folder = files(OLD, &new);
    let log = folder.path().join("access.log");
    let line = |path: &str, second: u32| {
        format!(
            r#"{{"timestamp":"2026-11-25T10:00:{second:02}.000Z","client_ip":"192.0.2.1","method":"GET","host":"a.test","path":"{path}","status":200,"duration_ms":1.5}}"#
        )
    };
    let lines = [
        line("/admin", 2),
        line("/admin/x", 1),
        line("/admin", 3),
        "no request".to_owned(),
    ];
    fs::write(&log, lines.join("\n")).unwrap();
    let [old, new] = ["old", "new"].map(|name| folder.path().join(name).join("edge.kdl"));

    let mut command = Command::new(BINARY);
    command
        .arg("replay")
        .arg(&log)
        .arg("--old")
        .arg(&old)
        .arg("--new")
        .arg(&new);
    let output = command.output().unwrap();
    let page = text(&output);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(
        page.starts_with("2 of 3 recorded requests are answered differently\n"),
        "{page}"
    );
    assert!(page.contains("GET a.test/admin"), "{page}");
    assert!(
        page.contains("skipped: 1 lines that are not recorded requests"),
        "{page}"
    );

    let traffic = log.to_str().unwrap();
    let output = diff(folder.path(), &["--json", "--traffic", traffic]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["traffic"]["different"], 2, "{found}");
    let output = diff(folder.path(), &["--traffic", "/nowhere/access.log"]);
    assert_eq!(output.status.code(), Some(2));
}
