//! Recorded request heads: from the running process to `proxyd replay` and drafts of tests.

use crate::support::{BINARY, Config, request};
use proxy_load::clock::Stopwatch;
use proxy_testkit::{EVENT_TIMEOUT, Launch, Proxyd, RawClient, Reload, Upstream, get};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Environment variable with the number of heads; the default is 10 000.
const HEADS: &str = "PROXYD_RECORDED_HEADS";
const ADMIN: &str = "admin { address \"127.0.0.1:0\" }";
const ALL: &str = "observability { recording { sample-percent 100; redact \"X-Tenant\"; \
                   keep \"64MiB\" }; redact-query \"token\" }";

/// Waits for this number of recorded lines; returns them.
#[track_caller]
fn recorded(proxyd: &Proxyd, count: usize) -> Vec<String> {
    let begun = Stopwatch::start();
    loop {
        let mut admin = RawClient::connect(proxyd.admin_address());
        let answer = admin.ask("GET /admin/recording HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert_eq!(answer.status, 200);
        let text = String::from_utf8(answer.body).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        if count <= lines.len() {
            return lines;
        }
        assert!(begun.elapsed() < EVENT_TIMEOUT, "{} lines", lines.len());
    }
}

fn saved(proxyd: &Proxyd, lines: &[String]) -> PathBuf {
    let file = proxyd.folder().join("heads.jsonl");
    fs::write(&file, lines.join("\n")).unwrap();
    file
}

fn replay(file: &Path, old: &Path, new: &Path) -> Value {
    let mut command = Command::new(BINARY);
    command.arg("replay").arg(file).arg("--json");
    let output = command.arg("--old").arg(old).arg("--new").arg(new).output();
    serde_json::from_slice(&output.unwrap().stdout).unwrap()
}

fn drafted(config: &Path, recording: &Path) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["config", "test", "--new"]).arg(config);
    command.arg("--from").arg(recording).output().unwrap()
}

/// Creates a configuration with routes that differ in every kind of condition.
fn site(upstream: &Upstream) -> Config {
    let to = |matches: &str| format!("matches {{ {matches} }}; upstream \"u\"");
    Config::to(upstream)
        .route(
            "health",
            "matches { path \"/health\" }; service-type \"builtin\"; builtin-handler \"health\"",
        )
        .route("beta", &to("path-prefix \"/api\"; header \"X-Beta\" \"1\""))
        .route(
            "writes",
            &to("path-prefix \"/api\"; method \"POST\" \"PUT\""),
        )
        .route("api", &to("path-prefix \"/api\""))
        .route("shop", &to("host \"shop.test\""))
        .route("items", &to("path-regex \"^/items/[0-9]+$\""))
        .route("search", &to("path \"/search\"; query-param \"q\" \"x\""))
        .route(
            "limited",
            &format!(
                "{}; policies {{ rate-limit {{ requests-per-second 1; burst 3 }} }}",
                to("path \"/limited\"")
            ),
        )
        .route(
            "small",
            &format!("{}; policies {{ max-body-size 3 }}", to("path \"/small\"")),
        )
}

/// Formats a request for each route in turn, some of which are refused.
fn sent(number: usize) -> String {
    let n = number / 12;
    match number % 12 {
        0 => String::from("GET /health HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        1 => format!("GET /api/{n} HTTP/1.1\r\nHost: a.test\r\nX-Beta: 1\r\n\r\n"),
        2 => format!("POST /api/{n} HTTP/1.1\r\nHost: a.test\r\nContent-Length: 2\r\n\r\nok"),
        3 => format!("GET /api/{n}?a=b HTTP/1.1\r\nHost: A.test:80\r\nX-Beta: 0\r\n\r\n"),
        4 => format!("GET /{n} HTTP/1.1\r\nHost: shop.test\r\nAccept: a\r\nAccept: b\r\n\r\n"),
        5 => format!("GET /items/{n} HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        6 => format!("GET /items/x{n} HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        7 => String::from("GET /search?q=x HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        8 => String::from("GET /limited HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        9 => String::from("GET /api%2fx/..;/y HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        10 => String::from("GET /a/../api/%7Ex HTTP/1.1\r\nHost: a.test\r\n\r\n"),
        _ => String::from(
            "PUT /small HTTP/1.1\r\nHost: a.test\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        ),
    }
}

#[test]
fn recorded_requests_are_decided_again_as_they_were() {
    let heads = env::var(HEADS).map_or(10_000, |heads| heads.parse().unwrap());
    let upstream = Upstream::saying("ok");
    let config = site(&upstream).top(ADMIN).top(ALL);
    let proxyd = config.start();
    let mut client = proxyd.connect();
    for number in 0..heads {
        let answer = client.ask(sent(number));
        if answer.fields.get("connection") == Some("close") {
            client = proxyd.connect();
        }
    }
    let lines = recorded(&proxyd, heads);
    assert_eq!(lines.len(), heads, "each request once");
    let file = saved(&proxyd, &lines);

    let same = replay(&file, proxyd.config(), proxyd.config());
    let counts = ["requests", "different", "skipped_lines", "unlike_recorded"];
    let counts = counts.map(|name| same[name].as_u64().unwrap());
    assert_eq!(counts, [heads as u64, 0, 0, 0], "{same}");

    // Another configuration than the recorded one decides differently, which is reported.
    let other = proxyd.folder().join("other.kdl");
    let text = config.kdl().replace("X-Beta", "X-Gamma");
    fs::write(&other, text).unwrap();
    let unlike = replay(&file, &other, proxyd.config());
    let expected = (0..heads).filter(|number| number % 12 == 1).count();
    assert_eq!(unlike["unlike_recorded"], expected, "{unlike}");
    assert_eq!(unlike["different"], expected);

    let drafts = drafted(proxyd.config(), &file);
    let drafts = String::from_utf8(drafts.stdout).unwrap();
    let beta = drafts
        .split("test ")
        .find(|test| test.starts_with("\"beta GET\""));
    let beta = beta.unwrap_or_else(|| panic!("{drafts}"));
    assert!(beta.contains("header \"x-beta\" \"1\""), "{beta}");
    assert!(
        beta.contains("expect { route \"beta\"; upstream \"u\" }"),
        "{beta}"
    );
    let search = drafts
        .split("test ")
        .find(|test| test.starts_with("\"search GET\""));
    assert!(!search.unwrap().contains("header"), "{drafts}");
    let tested = proxyd.folder().join("tested.kdl");
    fs::write(&tested, format!("{}\n{drafts}", config.kdl())).unwrap();
    let mut test = Command::new(BINARY);
    let test = test.args(["config", "test"]).arg(&tested).output().unwrap();
    assert!(
        test.status.success(),
        "{}\n{drafts}",
        String::from_utf8_lossy(&test.stderr)
    );
}

#[test]
fn a_recording_has_no_credentials() {
    let upstream = Upstream::echo();
    let verified = "priority 10; matches { path \"/v\" }; upstream \"u\"; jwt { issuer \"i\"; \
                    audience \"a\"; hmac-file \"shared.bin\"; header \"X-Jwt\" }";
    let config = Config::to(&upstream).route("verified", verified);
    let launch = Launch::new(BINARY, &config.top(ADMIN).top(ALL).kdl());
    fs::write(launch.folder().join("shared.bin"), [7; 32]).unwrap();
    let proxyd = launch.start();
    // A token for a route without `jwt` is a secret, too.
    let secrets = "Authorization: Bearer s3cret-a\r\nCookie: id=s3cret-b\r\nX-Tenant: s3cret-c\r\n\
                   X-Api-Key: s3cret-d\r\nContent-Length: 8\r\nX-Jwt: s3cret-g\r\n\
                   Referer: http://a/?Token=s3cret-h\r\nX-Original-Url: /?b&token=s3cret-i\r\n";
    for _ in 0..2 {
        proxyd
            .connect()
            .ask(request("PUT /a?token=s3cret-e&b=c", secrets, "s3cret-f"));
    }
    let lines = recorded(&proxyd, 2);
    for line in &lines {
        assert!(!line.contains("s3cret"), "{line}");
        assert!(line.contains("/a?token=REDACTED&b=c"), "{line}");
    }
    let field = |line: &String, name: &str| {
        let record: Value = serde_json::from_str(line).unwrap();
        record["headers"][name][0].as_str().unwrap().to_owned()
    };
    let tenant = field(&lines[0], "x-tenant");
    assert!(tenant.starts_with("digest:"), "{tenant}");
    assert_eq!(
        tenant,
        field(&lines[1], "x-tenant"),
        "the same value has the same digest"
    );
    assert_ne!(tenant, field(&lines[0], "x-api-key"));
}

#[test]
fn values_of_a_repeated_field_are_recorded_together() {
    let upstream = Upstream::saying("");
    let proxyd = Config::to(&upstream).top(ADMIN).top(ALL).start();
    let fields = [("X-One", "1"), ("Accept", "*/*"), ("x-one", "2")];
    let _ = proxyd.connect().ask(get("/", &fields));
    let lines = recorded(&proxyd, 1);
    let record: Value = serde_json::from_str(&lines[0]).unwrap();
    let expected = json!({"host": ["a.test"], "x-one": ["1", "2"], "accept": ["*/*"]});
    assert_eq!(record["headers"], expected);
}

#[test]
fn a_recording_is_bounded_and_ends_with_its_setting() {
    let upstream = Upstream::saying("");
    let small = "observability { recording { sample-percent 50; keep \"64KiB\" } }";
    let config = Config::to(&upstream).top(ADMIN);
    let kdl = config.kdl();
    let proxyd = config.top(small).start();
    let mut client = proxyd.connect();
    for _ in 0..1_000 {
        let _ = client.ask(get("/", &[]));
    }
    let lines = recorded(&proxyd, 50);
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    assert!(bytes <= 64 * 1024, "{bytes}");
    assert!(lines.len() < 500, "{}", lines.len());
    assert_eq!(proxyd.reload(&kdl), Reload::Applied);
    let mut admin = RawClient::connect(proxyd.admin_address());
    let answer = admin.ask("GET /admin/recording HTTP/1.1\r\nHost: localhost\r\n\r\n");
    assert_eq!(answer.status, 404);
    let _ = proxyd.connect().ask(get("/", &[]));
}
