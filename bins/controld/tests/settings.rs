//! Settings from flags and a file: checked before anything starts, and each with its effect.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

use control_app::metric::{METRICS, MetricKind};
use control_testkit::{Client, Program, Receiver, until, write_rows};
use rustix::net::{AddressFamily, SocketType, bind, socket};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");

/// Folder for data, certificate and configuration.
struct Folder(TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }

    /// Replaces the certificate of 127.0.0.1 by a new one; returns it as a root for clients.
    fn certify(&self, name: &str) -> String {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        self.write("cert.pem", &made.cert.pem());
        self.write("key.pem", &made.signing_key.serialize_pem());
        self.write(name, &made.cert.pem());
        self.path(name)
    }

    fn check(&self, text: &str) -> Output {
        let file = self.write("controld.kdl", text);
        run(&["check", "--config", &file.display().to_string()])
    }
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(CONTROLD);
    command.env_clear().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Returns true if a client that trusts only `ca_file` gets an authentication error, but no TLS
/// error.
fn is_trusted(program: &Program, ca_file: &str) -> bool {
    let ran = run(&[
        "ctl",
        "whoami",
        "--url",
        program.base_url(),
        "--ca-file",
        ca_file,
    ]);
    text(&ran.stderr).contains("AUTHENTICATION_FAILED")
}

#[test]
fn a_certificate_is_served_and_read_again_on_sighup() {
    let folder = Folder::new();
    let first = folder.certify("first.pem");
    let (data, cert, key) = (
        folder.path("data"),
        folder.path("cert.pem"),
        folder.path("key.pem"),
    );
    let arguments = ["--data-dir", &data, "--tls-cert", &cert, "--tls-key", &key];
    let program = Program::start(CONTROLD, &arguments);
    assert!(program.base_url().starts_with("https://"));
    assert!(is_trusted(&program, &first));
    let second = folder.certify("second.pem");
    assert!(
        !is_trusted(&program, &second),
        "the files were not read yet"
    );
    program.hang_up();
    until("the new certificate is served", || {
        is_trusted(&program, &second)
    });
    assert!(!is_trusted(&program, &first));
    folder.write("cert.pem", "not a certificate");
    program.hang_up();
    assert!(is_trusted(&program, &second), "a bad file changes nothing");
}

/// Returns the status of a request with a wrong key that a balancer forwards for `client`.
fn guess(program: &Program, client: &str) -> u16 {
    let guess = program.client().with_bearer(&"x".repeat(43));
    let fields = [("x-forwarded-for", client)];
    guess.send("GET", "/api/v1/orgs", &fields, None).status
}

/// Returns the number of wrong credentials until the lockout. The bucket holds 60, and refills by
/// five a second.
fn guesses_until_refused(program: &Program, clients: impl Iterator<Item = String>) -> usize {
    let statuses = clients.take(1_000).map(|client| guess(program, &client));
    let compared: Vec<u16> = statuses.take_while(|status| *status != 429).collect();
    assert!(compared.iter().all(|status| *status == 401), "{compared:?}");
    compared.len()
}

#[test]
fn only_a_trusted_proxy_names_the_client() {
    let folder = Folder::new();
    let data = folder.path("one");
    let trusting = ["--data-dir", &data, "--trusted-proxies", "127.0.0.0/8"];
    let program = Program::start(CONTROLD, &trusting);
    let same = std::iter::repeat("192.0.2.1".to_owned());
    let guesses = guesses_until_refused(&program, same);
    assert!((60..1_000).contains(&guesses), "{guesses}");
    assert_eq!(
        guess(&program, "192.0.2.2"),
        401,
        "another client has its own bucket"
    );

    let data = folder.path("two");
    let program = Program::start(CONTROLD, &["--data-dir", &data]);
    let names = (0..).map(|number| format!("192.0.2.{}", number % 250));
    let guesses = guesses_until_refused(&program, names);
    assert!(
        (60..1_000).contains(&guesses),
        "a stranger's word does not count: {guesses}"
    );
}

#[test]
fn the_session_cookie_behind_a_balancer_is_secure() {
    let folder = Folder::new();
    let alone = ["--data-dir", &folder.path("one")];
    let after = [
        "--data-dir",
        &folder.path("two"),
        "--trusted-proxies",
        "127.0.0.0/8",
    ];
    for (arguments, name, is_secure) in [
        (&alone[..], "session=", false),
        (&after, "__Host-session=", true),
    ] {
        let mut program = Program::start(CONTROLD, arguments);
        let link = program.client().with_bearer(&program.setup_token());
        let body = json!({
            "org_name": "acme", "email": "ann@example.com", "user_name": "Ann",
            "password": "correct horse",
        });
        let made = link.post("/api/v1/setup", &body);
        let cookie = made.header("set-cookie");
        assert!(cookie.starts_with(name), "{cookie}");
        assert_eq!(cookie.ends_with("; Secure"), is_secure, "{cookie}");
        let pair = cookie.split(';').next().unwrap_or_default();
        let client = program.client();
        let me = client.send("GET", "/api/v1/users/me", &[("cookie", pair)], None);
        assert_eq!(me.status, 200, "{}", me.text);
    }
}

#[test]
fn the_secret_of_the_setup_link_is_not_stored() {
    let folder = Folder::new();
    let data = folder.path("data");
    let mut program = Program::start(CONTROLD, &["--data-dir", &data]);
    let token = program.setup_token();
    let shown = program.client().get(&format!("/set-up?token={token}"));
    assert_eq!(shown.status, 200);
    assert_eq!(shown.header("cache-control"), "no-store");
    assert_eq!(shown.header("referrer-policy"), "no-referrer");
    assert_eq!(shown.header("x-content-type-options"), "nosniff");
}

#[test]
fn a_fault_is_reported_with_its_line() {
    let folder = Folder::new();
    let data = folder.path("data");
    let good = folder.check(&format!("data-dir \"{data}\"\nlisten \"127.0.0.1:0\"\n"));
    assert!(good.status.success(), "{}", text(&good.stderr));
    assert!(!Path::new(&data).exists(), "a check makes nothing");
    let cert = format!("tls-cert \"{data}/none.pem\"\ntls-key \"{data}/none.key\"\n");
    let file = folder.write("bad.key", "zz\n");
    fs::set_permissions(file, fs::Permissions::from_mode(0o600)).unwrap();
    let key = format!("master-key-file \"{}\"\n", folder.path("bad.key"));
    for (file, message, place) in [
        (
            "lisen \"127.0.0.1:1\"\n",
            "did you mean `listen`?",
            "controld.kdl:1:1",
        ),
        (
            "\nlisten \"here\"\n",
            "listen here: is not an IP address with a port",
            "controld.kdl:2:8",
        ),
        (
            "listen \"0.0.0.0:1\"\n",
            "keys would be sent in clear",
            "controld.kdl:1:1",
        ),
        (
            "database \"mysql://a\"\n",
            "begins neither with postgres://",
            "controld.kdl:1:1",
        ),
        (
            "trusted-proxies \"10.0.0.0/8\" \"ten\"\n",
            "ten: is neither a network nor an IP address",
            "controld.kdl:1:30",
        ),
        ("listen {\n", "", "controld.kdl:"),
        (&cert, "none.pem", "controld.kdl:1:1"),
        ("tls-key \"a\"\n", "go together", "controld.kdl:1:1"),
        (&key, "not hexadecimal", "controld.kdl:1:1"),
    ] {
        let bad = folder.check(file);
        let printed = text(&bad.stderr);
        assert_eq!(bad.status.code(), Some(1), "{file}: {printed}");
        assert!(printed.contains(message), "{file}: {printed}");
        assert!(printed.contains(place), "{file}: {printed}");
    }
    let missing = run(&["check", "--config", &folder.path("none.kdl")]);
    assert_eq!(missing.status.code(), Some(1));
    let half = run(&["check", "--tls-cert", "a"]);
    assert_eq!(half.status.code(), Some(2), "a certificate needs its key");
}

#[test]
fn a_configuration_that_check_refuses_does_not_start() {
    let folder = Folder::new();
    let data = folder.path("data");
    let refused = run(&["--data-dir", &data, "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(text(&refused.stderr).contains("keys would be sent in clear"));
    assert_eq!(text(&refused.stdout), "");
}

#[test]
fn a_file_sets_the_settings_without_a_flag() {
    let folder = Folder::new();
    let (data, key) = (folder.path("data"), folder.path("other.key"));
    let database = format!("sqlite://{}?mode=rwc", folder.path("other.db"));
    folder.certify("ca.pem");
    let file = folder.write(
        "controld.kdl",
        &format!(
            "data-dir \"{data}\"\nmaster-key-file \"{key}\"\ndatabase \"{database}\"\n\
             tls-cert \"{}\"\ntls-key \"{}\"\nlisten \"127.0.0.1:1\"\n",
            folder.path("cert.pem"),
            folder.path("key.pem")
        ),
    );
    let file = file.display().to_string();
    let mut program = Program::start(CONTROLD, &["--config", &file]);
    assert!(program.base_url().starts_with("https://127.0.0.1:"));
    assert!(!program.base_url().ends_with(":1"), "the flag wins");
    assert!(is_trusted(&program, &folder.path("ca.pem")));
    assert!(program.terminate().success());
    for made in [&key, &folder.path("other.db")] {
        assert!(Path::new(made).exists(), "{made}");
    }
    assert!(!Path::new(&data).join("master.key").exists());
    // The same file applies to the other commands.
    let verified = run(&["audit", "verify", "--config", &file]);
    assert!(verified.status.success(), "{}", text(&verified.stderr));
}

#[test]
fn the_settings_in_the_kubernetes_manifest_are_valid() {
    let folder = Folder::new();
    folder.certify("ca.pem");
    let manifest = include_str!("../../../examples/kubernetes/controld.yaml");
    let (_, rest) = manifest.split_once("  controld.kdl: |\n").unwrap();
    let lines = rest.lines().take_while(|line| line.starts_with("    "));
    let settings: Vec<&str> = lines.map(str::trim_start).collect();
    let settings = settings
        .join("\n")
        .replace("/etc/controld-tls/tls.crt", &folder.path("cert.pem"))
        .replace("/etc/controld-tls/tls.key", &folder.path("key.pem"))
        .replace("/var/lib/controld", &folder.path("data"));
    assert!(settings.contains("listen \"0.0.0.0:8443\""), "{settings}");
    let checked = folder.check(&settings);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn a_key_file_that_others_can_read_is_refused() {
    let folder = Folder::new();
    let (data, key) = (folder.path("data"), folder.path("master.key"));
    folder.write("master.key", &"ab".repeat(32));
    let arguments = ["--data-dir", &data, "--master-key-file", &key];
    for (mode, is_good) in [
        (0o600, true),
        (0o400, true),
        (0o640, true),
        (0o644, false),
        (0o660, false),
    ] {
        fs::set_permissions(&key, fs::Permissions::from_mode(mode)).unwrap();
        let checked = run(&[&["check"][..], &arguments].concat());
        let printed = text(&checked.stderr);
        assert_eq!(checked.status.success(), is_good, "{mode:o}: {printed}");
        assert_eq!(printed.contains("is open to others"), !is_good, "{printed}");
    }
    let refused = run(&[&["--listen", "127.0.0.1:0"][..], &arguments].concat());
    assert!(text(&refused.stderr).contains("is open to others"));
    assert_eq!(refused.status.code(), Some(1));
}

#[test]
fn keys_are_not_sent_without_tls_off_loopback() {
    let whoami = ["ctl", "whoami", "--url", "http://192.0.2.1:1"];
    let refused = run(&whoami);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(
        text(&refused.stderr).contains("--allow-plain-http"),
        "{refused:?}"
    );
}

#[test]
fn keys_are_sent_without_tls_off_loopback_if_that_is_allowed() {
    let folder = Folder::new();
    let key = "x".repeat(43);
    let key_file = folder.write("key", &key).display().to_string();
    let server = Receiver::answering("200 OK");
    // The system connects to loopback for this address, which is not a loopback address.
    let url = server.url().replace("127.0.0.1", "0.0.0.0");
    let whoami = ["ctl", "whoami", "--url", &url, "--key-file", &key_file];
    let refused = run(&whoami);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    assert!(server.received().is_empty(), "no key was sent");
    let sent = run(&[&whoami[..], &["--allow-plain-http"]].concat());
    let received = server.received();
    assert_eq!(received.len(), 1, "{sent:?}");
    assert_eq!(received[0].header("authorization"), format!("Bearer {key}"));
}

/// Starts `controld` with an address for metrics; returns the process, the interface's address and
/// the metrics' address.
fn with_metrics(data: &str) -> (Child, String, String) {
    let mut command = Command::new(CONTROLD);
    command.args(["--listen", "127.0.0.1:0", "--data-dir", data]);
    command
        .args(["--metrics-listen", "127.0.0.1:0"])
        .stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let lines: Vec<String> = lines.take(3).map(Result::unwrap).collect();
    let url = lines[0].strip_prefix("listening on ").unwrap();
    let metrics = lines[2].strip_prefix("metrics at ").unwrap();
    (
        process,
        url.to_owned(),
        metrics.strip_suffix("/metrics").unwrap().to_owned(),
    )
}

#[test]
fn metrics_are_served_to_this_machine_or_at_a_separate_address() {
    let folder = Folder::new();
    let program = Program::start(CONTROLD, &["--data-dir", &folder.path("one")]);
    let answer = program.client().get("/metrics");
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    assert_eq!((answer.status, answer.header("content-type")), (200, kind));
    let forwarded = [("x-forwarded-for", "192.0.2.1")];
    let answer = program.client().send("GET", "/metrics", &forwarded, None);
    assert_eq!(answer.status, 404, "a client of a balancer");
    let (mut process, url, metrics) = with_metrics(&folder.path("two"));
    assert_eq!(Client::new(&url).get("/metrics").status, 404);
    until("control_database_up", || {
        let answer = Client::new(&metrics).get("/metrics");
        answer.text.contains("control_database_up")
    });
    let answer = Client::new(&metrics).get("/metrics");
    assert_eq!(answer.header("content-type"), kind);
    assert!(
        answer.text.contains("control_database_up"),
        "{}",
        answer.text
    );
    process.kill().unwrap();
    process.wait().unwrap();
}

#[test]
fn the_heartbeat_interval_has_bounds() {
    let folder = Folder::new();
    for (secs, is_good) in [(0, false), (1, true), (300, true), (301, false)] {
        let checked = folder.check(&format!("heartbeat-secs {secs}\n"));
        let printed = text(&checked.stderr);
        assert_eq!(checked.status.success(), is_good, "{secs}: {printed}");
        assert_eq!(
            printed.contains("heartbeat-secs"),
            !is_good,
            "{secs}: {printed}"
        );
    }
}

/// Requests `/health` on a connection that stays open; `None` if the connection is closed instead.
fn status_line(stream: &mut TcpStream) -> Option<String> {
    let request = b"GET /health HTTP/1.1\r\nhost: control\r\n\r\n";
    stream.write_all(request).ok()?;
    let mut bytes = [0; 15];
    stream.read_exact(&mut bytes).ok()?;
    Some(text(&bytes))
}

#[test]
fn connections_above_the_bound_are_closed_and_counted() {
    let folder = Folder::new();
    let arguments = ["--data-dir", &folder.path("data"), "--max-connections", "2"];
    let program = Program::start(CONTROLD, &arguments);
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let connect = || {
        let stream = TcpStream::connect(authority).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_secs(30)))
            .unwrap();
        stream
    };
    let (mut first, mut second) = (connect(), connect());
    assert_eq!(status_line(&mut first).unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(status_line(&mut second).unwrap(), "HTTP/1.1 200 OK");
    assert_eq!(status_line(&mut connect()), None, "a third one is closed");
    drop(second);
    until("a connection is free again", || {
        status_line(&mut connect()).is_some()
    });
    drop(first);
    until("the refusal is counted", || {
        let answer = program.client().attempt("GET", "/metrics", &[], None);
        answer.is_ok_and(|answer| {
            let name = "control_connections_refused_total ";
            let line = answer.text.lines().find_map(|line| line.strip_prefix(name));
            line.is_some_and(|count| count != "0")
        })
    });
}

#[test]
fn bytes_that_are_not_a_request_are_answered_like_every_error() {
    let folder = Folder::new();
    let program = Program::start(CONTROLD, &["--data-dir", &folder.path("data")]);
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(100_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "a: b\r\n".repeat(200));
    for (bytes, status, code) in [
        ("no request at all\r\n\r\n", "400", "PARSE"),
        ("GET / HTTP/1.1\r\na b: c\r\n\r\n", "400", "PARSE"),
        (long.as_str(), "414", "LIMIT_EXCEEDED"),
        (many.as_str(), "431", "LIMIT_EXCEEDED"),
    ] {
        let mut stream = TcpStream::connect(authority).unwrap();
        let time = Some(Duration::from_secs(30));
        stream.set_read_timeout(time).unwrap();
        // The response may arrive before the request is completely sent.
        drop(stream.write_all(bytes.as_bytes()));
        let mut answer = Vec::new();
        drop(stream.read_to_end(&mut answer));
        let answer = text(&answer);
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status} ")),
            "{answer}"
        );
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap();
        assert_eq!(body["error"]["code"], code, "{body}");
        let id = body["error"]["correlation_id"].as_str().unwrap();
        assert!(
            head.contains(&format!("\r\nx-correlation-id: {id}\r\n")),
            "{head}"
        );
    }
}

#[test]
fn every_counter_exists_before_its_first_event() {
    let folder = Folder::new();
    let program = Program::start(CONTROLD, &["--data-dir", &folder.path("data")]);
    let metrics = program.client().get("/metrics").text;
    for metric in METRICS {
        // Has labels for routes and statuses, so it appears with the first request.
        let may_be_absent = metric.name == "control_requests_total";
        let is_there = metrics
            .lines()
            .any(|line| line.starts_with(metric.name) && !line.starts_with('#'));
        if metric.kind == MetricKind::Counter && !may_be_absent {
            assert!(is_there, "{}", metric.name);
        }
    }
}

/// Connects from `source`, an address that no other test uses.
fn connect_from(source: &str, authority: &str) -> TcpStream {
    let address: SocketAddr = format!("{source}:0").parse().unwrap();
    let socket = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&socket, &address).unwrap();
    let authority: SocketAddr = authority.parse().unwrap();
    rustix::net::connect(&socket, &authority).unwrap();
    let stream = TcpStream::from(socket);
    let time = Some(Duration::from_secs(30));
    stream.set_read_timeout(time).unwrap();
    stream
}

#[test]
fn silent_connections_of_one_address_leave_room_for_others() {
    let folder = Folder::new();
    let arguments = [
        "--data-dir",
        &folder.path("data"),
        "--max-connections",
        "16",
    ];
    let program = Program::start(CONTROLD, &arguments);
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let silent: Vec<TcpStream> = (0..50)
        .map(|_| connect_from("127.0.0.2", authority))
        .collect();
    let mut other = connect_from("127.0.0.3", authority);
    assert_eq!(status_line(&mut other).unwrap(), "HTTP/1.1 200 OK");
    drop(silent);
}

#[test]
fn a_bound_of_connections_outside_its_range_is_refused() {
    for wrong in ["0", "1000001"] {
        let refused = run(&["check", "--max-connections", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    }
}

#[test]
fn a_failed_start_names_its_setting_and_a_remedy() {
    let folder = Folder::new();
    let data = folder.path("data");
    let file = folder.write("file", "").display().to_string();
    let below_file = format!("{file}/data");
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let no_socket = format!("postgres:///control?host={}", folder.path("nowhere"));
    let no_key = folder.path("nowhere/master.key");
    for (arguments, printed) in [
        (
            ["--data-dir", &below_file],
            format!("--data-dir {below_file}: "),
        ),
        (
            ["--listen", &taken],
            format!("--listen {taken}: Address already in use"),
        ),
        (
            ["--listen", "localhost:8443"],
            "is not an IP address with a port".to_owned(),
        ),
        (
            ["--database", &no_socket],
            "--database: database unavailable: ".to_owned(),
        ),
        (
            ["--master-key-file", &no_key],
            format!("--master-key-file {no_key}: "),
        ),
    ] {
        let defaults = [("--listen", "127.0.0.1:0"), ("--data-dir", data.as_str())];
        let defaults = defaults.iter().filter(|(name, _)| *name != arguments[0]);
        let rest = defaults.flat_map(|(name, value)| [*name, *value]);
        let ran = run(&arguments.into_iter().chain(rest).collect::<Vec<_>>());
        assert!(!ran.status.success(), "{arguments:?}");
        let error = text(&ran.stderr);
        assert!(error.contains(&printed), "{arguments:?}: {error}");
    }
}

#[test]
fn commands_on_a_missing_control_plane_create_none() {
    let folder = Folder::new();
    let (none, copy) = (folder.path("none"), folder.path("copy.db"));
    for arguments in [
        &["backup", "--to", &copy][..],
        &["audit", "verify"],
        &["key", "rotate"],
        &["key", "prune"],
    ] {
        let all = [arguments, &["--data-dir", &none]].concat();
        let ran = run(&all);
        assert!(!ran.status.success(), "{arguments:?}");
        let error = text(&ran.stderr);
        assert!(error.contains("--data-dir: there is no "), "{error}");
    }
    assert!(!Path::new(&none).exists() && !Path::new(&copy).exists());
}

#[test]
fn secrets_without_their_key_are_reported_at_the_start() {
    let folder = Folder::new();
    let (data, key) = (folder.path("data"), folder.path("data/master.key"));
    let password = folder
        .write("password", "correct horse battery")
        .display()
        .to_string();
    let made = run(&[
        "admin",
        "create",
        "--data-dir",
        &data,
        "--email",
        "a@b.example",
        "--password-file",
        &password,
    ]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    fs::remove_file(&key).unwrap();
    let start = ["--data-dir", &data, "--listen", "127.0.0.1:0"];
    let printed = text(&run(&start).stderr);
    assert!(printed.contains("restore it from the backup"), "{printed}");
    assert!(!Path::new(&key).exists(), "a new key would open nothing");
    fs::write(&key, format!("{}\n", "ab".repeat(32))).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let printed = text(&run(&start).stderr);
    assert!(printed.contains("lacks the key "), "{printed}");
    // The key of the audit log is encrypted, too.
    let verified = run(&["audit", "verify", "--data-dir", &data]);
    let printed = text(&verified.stderr);
    assert!(!verified.status.success(), "{printed}");
    assert!(
        printed.contains("sealed with a key that is not in the key file"),
        "{printed}"
    );
}

/// Creates a data folder with a database; returns its path.
fn data_folder(folder: &Folder) -> String {
    let data = folder.path("data");
    let password = folder.write("password", "correct horse battery");
    let password = password.display().to_string();
    let create = ["admin", "create", "--email", "a@b.example"];
    let place = ["--data-dir", &data, "--password-file", &password];
    let made = run(&[&create[..], &place].concat());
    assert!(made.status.success(), "{}", text(&made.stderr));
    data
}

/// Checks that `serve` and `check` both refuse the folder, for this reason.
fn assert_refused(data: &str, reason: &str) {
    for command in [&["check"][..], &["--listen", "127.0.0.1:0"]] {
        let refused = run(&[command, &["--data-dir", data]].concat());
        let printed = text(&refused.stderr);
        assert_eq!(refused.status.code(), Some(1), "{command:?}: {printed}");
        assert!(
            printed.contains(&format!("--data-dir: {data}")) || printed.contains(data),
            "{printed}"
        );
        assert!(printed.contains(reason), "{command:?}: {printed}");
    }
}

#[test]
fn a_database_of_a_newer_version_is_refused_in_one_sentence() {
    let folder = Folder::new();
    let data = data_folder(&folder);
    write_rows(
        &format!("sqlite://{data}/control.db"),
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         SELECT 9999, 'newer', success, checksum, 0 FROM _sqlx_migrations WHERE version = 1",
    );
    let reason = "its schema 9999 is newer than this version knows: start the version that wrote it, \
                  or restore the backup from before";
    assert_refused(&data, reason);
    let checked = run(&["check", "--data-dir", &data]);
    assert_eq!(text(&checked.stdout), "");
    assert_eq!(
        text(&checked.stderr),
        format!("error: --data-dir: {data}: {reason}\n")
    );
}

#[test]
fn a_second_process_on_a_data_folder_is_refused() {
    let folder = Folder::new();
    let data = data_folder(&folder);
    let mut program = Program::start(CONTROLD, &["--data-dir", &data]);
    assert_refused(&data, "another controld runs on it");
    program.kill();
    let checked = run(&["check", "--data-dir", &data]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn a_database_without_the_keys_of_its_secrets_is_refused() {
    let folder = Folder::new();
    let data = data_folder(&folder);
    let program = Program::start(CONTROLD, &["--data-dir", &data]);
    drop(program);
    let file = folder.path("data/master.key");
    let key = fs::read(&file).unwrap();
    fs::remove_file(&file).unwrap();
    assert_refused(&data, "the secrets of the database need it");
    fs::write(&file, format!("{}\n", "07".repeat(32))).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert_refused(&data, "which secrets of the database need");
    fs::write(&file, key).unwrap();
    let checked = run(&["check", "--data-dir", &data]);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
}

#[test]
fn an_address_is_a_network_of_trusted_proxies() {
    let folder = Folder::new();
    let file = "trusted-proxies \"10.0.0.1\" \"::1\" \"10.1.0.0/16\"\n";
    let checked = folder.check(file);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let refused = folder.check("trusted-proxies \"ten\"\n");
    assert!(text(&refused.stderr).contains("is neither a network nor an IP address"));
}

#[test]
fn authorities_are_addresses_over_tls_and_their_roots_are_read() {
    let folder = Folder::new();
    folder.certify("roots.pem");
    let roots = folder.path("roots.pem");
    let good = format!(
        "acme-directories \"https://ca.internal/dir\" \"https://other.example/dir\"\nacme-ca-file \"{roots}\"\n"
    );
    let checked = folder.check(&good);
    assert!(checked.status.success(), "{}", text(&checked.stderr));
    let refused = folder.check("acme-directories \"http://ca.internal/dir\"\n");
    assert!(text(&refused.stderr).contains("is not an address such as https://"));
    folder.write("roots.pem", "no certificate");
    let refused = folder.check(&good);
    assert!(!refused.status.success());
    let printed = text(&refused.stderr);
    assert!(printed.contains("roots.pem"), "{printed}");
}

#[test]
fn a_damaged_page_is_refused() {
    let folder = Folder::new();
    let data = data_folder(&folder);
    let file = folder.path("data/control.db");
    let mut bytes = fs::read(&file).unwrap();
    bytes[4_096 * 5..4_096 * 6].fill(0xff);
    fs::write(&file, bytes).unwrap();
    assert_refused(&data, "is damaged");
}

#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let folder = Folder::new();
    let data = data_folder(&folder);
    let lock = Path::new(&data).join("controld.lock");
    fs::remove_file(&lock).ok();
    fs::create_dir(&lock).unwrap();
    assert_refused(&data, "cannot be written");
}

#[test]
fn a_file_that_is_not_a_database_is_reported_at_once() {
    let folder = Folder::new();
    let data = folder.path("data");
    fs::create_dir(&data).unwrap();
    folder.write("data/control.db", &"no database".repeat(1_000));
    let ran = run(&["--data-dir", &data, "--listen", "127.0.0.1:0"]);
    let printed = text(&ran.stderr);
    assert!(
        printed.contains(&format!("--data-dir {data}: ")),
        "{printed}"
    );
    assert!(printed.contains("not a database"), "{printed}");
}
