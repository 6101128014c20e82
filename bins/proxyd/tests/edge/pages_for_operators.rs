//! Pages of `docs/` against the real binary: the tutorial's commands, and the answers of the defaults.

use crate::support::BINARY;
use proxy_testkit::{Launch, Proxyd, Response, Upstream, free_port, get, post, request};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// Ports of the tutorial, each of which becomes a free one.
const TUTORIAL_PORTS: [&str; 4] = ["8443", "3001", "3002", "9090"];

fn page(path: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join(path)).unwrap()
}

fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    let parts = page.split(fence.as_str()).skip(1);
    parts
        .map(|part| part.split("```").next().unwrap())
        .collect()
}

/// Runs commands of a page in `folder`, with `proxyd` in the path; returns the printed text.
fn run(script: &str, folder: &Path) -> String {
    let program = folder.join("proxyd");
    if !program.exists() {
        symlink(BINARY, program).unwrap();
    }
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .args([
            "-euc",
            "trap 'kill $(jobs -p) 2> kill.log || true' EXIT; eval \"$0\"",
        ])
        .arg(script)
        .env("PATH", format!("{}:{path}", folder.display()))
        .env_remove("PROXYD_CONFIG")
        .current_dir(folder)
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{script}\n{out}\n{err}");
    out
}

#[test]
fn every_command_of_the_tutorial_prints_the_documented_output() {
    let page = page("learn/tutorial.md");
    let mut script = blocks(&page, "sh").concat();
    for port in TUTORIAL_PORTS {
        assert!(script.contains(port), "the tutorial has {port}");
        script = script.replace(port, &free_port().to_string());
    }
    let folder = tempfile::tempdir().unwrap();
    let out = run(&script, folder.path());
    for line in blocks(&page, "text").concat().lines() {
        assert!(out.contains(line), "`{line}` is not printed:\n{out}");
    }
}

/// A request refused by a default, and the setting that admits it.
struct DefaultCase {
    request: Vec<u8>,
    status: u16,
    /// The message, as the page has it.
    message: &'static str,
    reason: &'static str,
    /// The part of [`configuration`] that the setting replaces, and its replacement.
    setting: [&'static str; 2],
}

fn defaults() -> Vec<DefaultCase> {
    let value = |bytes| "v".repeat(bytes);
    let [cookie, wide] = [value(4200), value(4000)];
    let many: Vec<String> = (0..101).map(|number| format!("x-{number}")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|name| (name.as_str(), "")).collect();
    let mut half = vec![("x-rest", wide.as_str()); 2];
    half.push(("x-more", &cookie[..400]));
    vec![
        DefaultCase {
            request: get("/app", &[("Cookie", &cookie)]),
            status: 429,
            message: "Limit exceeded: header_size - Current value 4200 exceeds limit 4096",
            reason: "header_value_limit",
            setting: ["limits {", "limits { max-header-value-bytes \"5KiB\"; "],
        },
        DefaultCase {
            request: get("/app", &half),
            status: 429,
            message: "exceeds limit 8192",
            reason: "header_size_limit",
            setting: ["limits {", "limits { max-header-size-bytes \"16KiB\"; "],
        },
        DefaultCase {
            request: get("/app", &many),
            status: 429,
            message: "exceeds limit 100",
            reason: "header_count_limit",
            setting: ["limits {", "limits { max-header-count 200; "],
        },
        DefaultCase {
            request: post("/app", &value(11_000_000)).into_bytes(),
            status: 413,
            message: "exceeds limit 10485760",
            reason: "body_size_limit",
            setting: [
                "route \"app\" {",
                "route \"app\" { max-body-size \"20MB\"; ",
            ],
        },
        DefaultCase {
            request: post("/buffered", &value(1_100_000)).into_bytes(),
            status: 413,
            message: "exceeds limit 1048576",
            reason: "buffer_size_limit",
            setting: ["limits {", "limits { max-body-buffer-bytes \"2MiB\"; "],
        },
        DefaultCase {
            request: get("/files/a%2Fb", &[]),
            status: 400,
            message: "Request validation failed: path has more than one meaning",
            reason: "ambiguous_path",
            setting: [
                "route \"files\" {",
                "route \"files\" { path-policy \"forward\"; ",
            ],
        },
        DefaultCase {
            request: request("GET /other", "", "").into_bytes(),
            status: 404,
            message: "Not found: no route matches",
            reason: "route_not_found",
            setting: [
                "address \"127.0.0.1:0\"",
                "address \"127.0.0.1:0\"; default-route \"app\"",
            ],
        },
    ]
}

fn head(request: &[u8]) -> &[u8] {
    let end = request.windows(4).position(|at| at == b"\r\n\r\n");
    &request[..end.unwrap() + 4]
}

fn configuration(upstream: &Upstream) -> String {
    format!(
        r#"
        listeners {{ listener "web" {{ address "127.0.0.1:0" }} }}
        routes {{
            route "app" {{ matches {{ path-prefix "/app" }}; upstream "app" }}
            route "buffered" {{ matches {{ path-prefix "/buffered" }}; upstream "app"; buffer-requests #true }}
            route "files" {{ matches {{ path-prefix "/files" }}; upstream "app" }}
            route "a" {{ matches {{ path-prefix "/files/a" }}; upstream "app" }}
        }}
        upstreams {{ upstream "app" {{ target "{}" }} }}
        limits {{ standard-statuses #false }}
        system {{ worker-threads 1 }}
        "#,
        upstream.address()
    )
}

#[test]
fn defaults_answer_as_their_page_says_and_its_settings_help() {
    let page = page("operate/surprising-defaults.md");
    let upstream = Upstream::saying("ok");
    let kdl = configuration(&upstream);
    let proxyd = Proxyd::start(BINARY, &kdl);
    for default in defaults() {
        let [part, replacement] = default.setting;
        let (reason, message) = (default.reason, default.message);
        assert!(page.contains(message) && page.contains(reason), "{reason}");
        // A body that is announced too large is refused before it arrives.
        let response = proxyd.connect().ask(head(&default.request));
        assert_eq!(response.status, default.status, "{}", response.text());
        assert!(response.text().contains(message), "{}", response.text());
        let record = proxyd.access_record(&response.correlation_id());
        assert_eq!(record.text("reason"), reason);

        let changed = Launch::new(BINARY, &kdl.replace(part, replacement)).start();
        let response = changed.connect().ask(&default.request);
        assert_eq!(response.status, 200, "{reason}: {}", response.text());
    }
}

#[test]
fn the_hundred_and_first_connection_of_a_client_is_refused_as_its_page_says() {
    let page = page("operate/surprising-defaults.md");
    let upstream = Upstream::saying("ok");
    let proxyd = Proxyd::start(BINARY, &configuration(&upstream));
    let open: Vec<_> = (0..100).map(|_| proxyd.connect()).collect();
    let refused: Response = proxyd.connect().response();
    assert_eq!(refused.status, 503);
    let message = "Limit exceeded: connection_count - Current value 101 exceeds limit 100";
    assert!(refused.text().contains(message) && page.contains(message));
    drop(open);
}

/// Pages with commands that need no root, the number of such blocks from the beginning of the page, and
/// a part of their output.
const COMMANDS: [(&str, usize, &str); 6] = [
    ("operate/capacity.md", 1, "memory"),
    ("operate/doctor.md", 1, "configuration"),
    ("operate/migrate.md", 1, "site.kdl test is successful"),
    ("operate/top.md", 2, "upstream"),
    ("operate/upstreams.md", 1, "="),
    ("reference/admin.md", 2, "\"draining\":true"),
];

#[test]
fn the_commands_of_pages_run_against_a_proxy() {
    let upstream = Upstream::saying("ok");
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let admin = format!("127.0.0.1:{}", free_port());
    let kdl = format!(
        r#"
        admin {{ address "{admin}"; unix-socket "{}" }}
        listeners {{ listener "web" {{ address "127.0.0.1:0" }} }}
        routes {{ route "app" {{ upstream "app" }} }}
        upstreams {{ upstream "app" {{ target "{}" }} }}
        "#,
        file("admin.sock"),
        upstream.address()
    );
    let proxyd = Proxyd::start(BINARY, &kdl);
    // Sent, and ignored: the interface requires none.
    fs::write(file("admin-token"), "not-required-here").unwrap();
    let nginx = "events {}\nhttp { server { listen 8080; location / { return 204; } } }\n";
    fs::write(file("nginx.conf"), nginx).unwrap();
    run(
        "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out target.crt -subj /CN=a 2> made",
        folder.path(),
    );
    let replaced = [
        (
            "/etc/proxyd/proxyd.kdl",
            proxyd.config().display().to_string(),
        ),
        ("127.0.0.1:9090", admin.clone()),
        ("/etc/proxyd/admin-token", file("admin-token")),
        ("/run/proxyd/admin.sock", file("admin.sock")),
        ("top --once", format!("top --once --admin {admin}")),
        ("/etc/nginx/nginx.conf", file("nginx.conf")),
        ("10.0.0.1:8080", upstream.address().to_string()),
    ];
    for (path, count, expected) in COMMANDS {
        let page = page(path);
        let mut script = blocks(&page, "sh")[..count].concat();
        // The rest of the page's block asks a target of another network.
        if let Some(end) = script.find("# The same from a target") {
            script.truncate(end);
        }
        for (from, to) in &replaced {
            script = script.replace(from, to);
        }
        let out = run(&script, folder.path());
        assert!(out.contains(expected), "{path}: {out}");
    }
}
