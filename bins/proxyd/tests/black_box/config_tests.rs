//! Tests inside of a configuration, which must pass before anything is served.

use crate::support::{BINARY, Config};
use proxy_testkit::{Reload, Upstream, get};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;

const PASSING: &str = r#"
    test "all goes to the app" { request "GET" "/x"; expect { route "all"; upstream "u" } }
"#;
const FAILING: &str = r#"
    test "nobody gets in" { request "GET" "/x"; expect { status 403 } }
"#;

/// Creates a file with these tests in a new folder.
fn file(tests: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("edge.kdl");
    let text = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ target "127.0.0.1:9" }} }}
        tests {{ {tests} }}
        "#
    );
    fs::write(&path, text).unwrap();
    (folder, path)
}

fn run(words: &[&str], tests: &str) -> Output {
    let (_folder, path) = file(tests);
    let mut command = Command::new(BINARY);
    command.env_remove("PROXYD_CONFIG").args(words).arg(path);
    command.output().unwrap()
}

#[test]
fn a_configuration_whose_test_fails_is_never_served() {
    for words in [
        &["--test", "--config"][..],
        &["config", "check"],
        &["config", "test"],
        &["--config"],
    ] {
        let output = run(words, FAILING);
        assert_eq!(output.status.code(), Some(1), "{words:?}");
        let printed = String::from_utf8_lossy(&output.stderr);
        for part in [
            "config-test-failed",
            "edge.kdl:6:",
            "nobody gets in",
            "the request goes to upstream",
            "proxyd explain --config '",
            "GET '/x'",
        ] {
            assert!(printed.contains(part), "{part} is not in:\n{printed}");
        }
    }
}

#[test]
fn a_failed_test_hides_no_unusable_file() {
    let (folder, path) = file(FAILING);
    for name in ["admin.token", "cert.pem", "key.pem"] {
        fs::write(folder.path().join(name), "no secret\n").unwrap();
    }
    let text = fs::read_to_string(&path).unwrap();
    let files = r#"
        admin { address "127.0.0.1:0"; token-file "admin.token" }
        listeners {
            listener "tls" {
                address "127.0.0.1:0"
                protocol "https"
                tls { cert-file "cert.pem"; key-file "key.pem" }
            }
        }
    "#;
    fs::write(&path, format!("{text}{files}")).unwrap();

    let mut command = Command::new(BINARY);
    command.env_remove("PROXYD_CONFIG");
    let output = command.args(["config", "check"]).arg(&path).output();
    let output = output.unwrap();

    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let printed = String::from_utf8_lossy(&output.stderr);
    for code in ["config-test-failed", "bad-token", "bad-certificate"] {
        assert!(printed.contains(code), "{code} is not in:\n{printed}");
    }
}

#[test]
fn a_failed_test_prints_the_command_that_explains_it() {
    let (_folder, path) = file(FAILING);
    let mut command = Command::new(BINARY);
    let output = command
        .args(["config", "test", "--json"])
        .arg(&path)
        .output();
    let printed: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let explain = printed[0]["failures"][0]["explain"].as_str().unwrap();
    assert_eq!(
        explain,
        format!("proxyd explain --config '{}' GET '/x'", path.display())
    );

    let explain = explain.replacen("proxyd", BINARY, 1);
    let output = Command::new("sh").args(["-c", &explain]).output().unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(printed.contains("answer    upstream u"), "{printed}");
}

#[test]
fn the_tests_of_a_configuration_are_listed() {
    let output = run(&["config", "test"], PASSING);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    assert!(
        printed.contains("ok      all goes to the app\n"),
        "{printed}"
    );
    assert!(printed.contains("1 test passes"), "{printed}");

    let both = format!("{PASSING}{FAILING}");
    let output = run(&["config", "test", "--json"], &both);
    assert_eq!(output.status.code(), Some(1));
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed[0]["passed"], true);
    assert_eq!(printed[1]["name"], "nobody gets in");
    assert_eq!(printed[1]["failures"].as_array().unwrap().len(), 1);

    let output = run(&["config", "test"], "");
    assert_eq!(output.status.code(), Some(1), "a file without tests");
}

#[test]
fn a_reload_whose_test_fails_changes_nothing() {
    let (old, new) = (Upstream::saying("old"), Upstream::saying("new"));
    let proxyd = Config::to(&old).start();

    let failing = Config::to(&new).top(&format!("tests {{ {FAILING} }}"));
    assert!(matches!(proxyd.reload(&failing.kdl()), Reload::Refused(_)));
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "old");

    let passing = Config::to(&new).top(&format!("tests {{ {PASSING} }}"));
    assert_eq!(proxyd.reload(&passing.kdl()), Reload::Applied);
    assert_eq!(proxyd.connect().ask(get("/", &[])).text(), "new");
}

#[test]
fn tests_are_drafted_from_the_routes() {
    let (_folder, path) = file("");
    let mut command = Command::new(BINARY);
    command
        .env_remove("PROXYD_CONFIG")
        .args(["config", "test", "--new"]);
    let output = command.arg(&path).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let draft = String::from_utf8_lossy(&output.stdout);
    assert!(
        draft.contains("expect { route \"all\"; upstream \"u\" }"),
        "{draft}"
    );

    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("tests {  }", &draft);
    fs::write(&path, text).unwrap();
    let output = Command::new(BINARY)
        .args(["config", "test"])
        .arg(&path)
        .output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
}

#[test]
fn a_configuration_with_a_bypass_of_a_guard_is_never_served() {
    let never = r#"never "the app" { path-prefix "/admin"; upstream "u" }"#;
    let output = run(&["config", "test"], never);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8_lossy(&output.stderr);
    for part in ["the app", "/admin reaches upstream", "proxyd explain"] {
        assert!(printed.contains(part), "{part} is not in:\n{printed}");
    }
}

#[expect(clippy::disallowed_methods, reason = "certificates are dated from now")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// Creates a file with TLS, a certificate for `shop.test` that is valid for 30 days, and these
/// expectations.
fn file_with_tls(expected: &str) -> (TempDir, PathBuf) {
    let (folder, path) = file("");
    let key = rcgen::KeyPair::generate().unwrap();
    let mut certificate = rcgen::CertificateParams::new(vec!["shop.test".to_owned()]).unwrap();
    let hour = Duration::from_hours(1);
    let now = now();
    certificate.not_before = (now - hour).into();
    certificate.not_after = (now + 30 * 24 * hour + hour).into();
    let certificate = certificate.self_signed(&key).unwrap();
    fs::write(folder.path().join("chain.pem"), certificate.pem()).unwrap();
    fs::write(folder.path().join("key.pem"), key.serialize_pem()).unwrap();
    let text = format!(
        r#"
        listeners {{
            listener "main" {{
                address "127.0.0.1:0"; protocol "https"
                tls {{ cert-file "chain.pem"; key-file "key.pem" }}
            }}
        }}
        routes {{ route "all" {{ upstream "u" }} }}
        upstreams {{ upstream "u" {{ target "127.0.0.1:9" }} }}
        tests {{
            test "shop" {{ request "GET" "https://shop.test/"; expect {{ {expected} }} }}
        }}
        "#
    );
    fs::write(&path, text).unwrap();
    (folder, path)
}

#[test]
fn a_test_expects_a_certificate_and_its_days() {
    let check = |words: &[&str], expected: &str| {
        let (_folder, path) = file_with_tls(expected);
        let mut command = Command::new(BINARY);
        command.env_remove("PROXYD_CONFIG").args(words).arg(path);
        let output = command.output().unwrap();
        let printed = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(printed).unwrap(),
        )
    };
    let (test, served) = (&["config", "test"][..], &["config", "check"][..]);
    for words in [test, served] {
        let (code, printed) = check(words, "certificate \"Shop.test\"; certificate-days 30");
        assert_eq!(code, 0, "{printed}");
        let (code, printed) = check(words, "certificate \"other.test\"");
        assert_eq!(code, 1, "{printed}");
        assert!(
            printed.contains("is for shop.test, not `other.test`"),
            "{printed}"
        );
    }
    let (code, printed) = check(test, "certificate-days 31");
    assert_eq!(code, 1, "{printed}");
    assert!(printed.contains("valid for 30 days, not 31"), "{printed}");
    let (code, printed) = check(served, "certificate-days 31");
    assert_eq!(
        code, 0,
        "a restart does not fail by the passing of time: {printed}"
    );
    assert!(printed.contains("valid for 30 days, not 31"), "{printed}");
    let plain = r#"test "t" { request "GET" "/x"; expect { certificate "a.test" } }"#;
    let output = run(&["config", "test"], plain);
    assert_eq!(output.status.code(), Some(1));
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("serves no certificate"), "{printed}");
}
