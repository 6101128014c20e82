//! Life cycle of the real program on both databases, from the first start on.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may stop"
)]

use control_testkit::{Database, ObjectServer, Program, databases};
use proxy_load::clock::Stopwatch;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;

const CONTROLD: &str = env!("CARGO_BIN_EXE_controld");
/// Much shorter than a long poll.
const DEADLINE: Duration = Duration::from_secs(10);

fn arguments(folder: &Path, database: &Database) -> Vec<String> {
    let folder = folder.display().to_string();
    let mut arguments = vec!["--data-dir".to_owned(), folder];
    if database.kind == "postgres" {
        arguments.extend(["--database".to_owned(), database.url.clone()]);
    }
    arguments
}

fn run(command: &[&str], arguments: &[String]) -> Output {
    let mut program = Command::new(CONTROLD);
    program.args(command).args(arguments).output().unwrap()
}

fn set_up(program: &mut Program) -> Value {
    let token = program.setup_token();
    let body = json!({
        "org_name": "acme", "project_name": "edge", "api_key_name": "first",
        "email": "ann@example.com", "user_name": "Ann", "password": "correct horse",
    });
    let made = program
        .client()
        .with_bearer(&token)
        .post("/api/v1/setup", &body);
    assert_eq!(made.status, 201, "{}", made.text);
    made.json()
}

#[test]
fn acknowledged_writes_survive_a_kill() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let mut program = Program::start(CONTROLD, &arguments);
        let made = set_up(&mut program);
        let key = made["api_key"]["secret"].as_str().unwrap().to_owned();
        let org = made["org"]["id"].as_str().unwrap().to_owned();
        let path = format!("/api/v1/orgs/{org}/projects");
        let client = program.client().with_bearer(&key);
        let created = client.post(&path, &json!({"name": "core"}));
        assert_eq!(created.status, 201, "{}", created.text);
        let nodes = format!(
            "/api/v1/projects/{}/nodes",
            made["project"]["id"].as_str().unwrap()
        );
        let register = format!("{nodes}/register");
        let registered = client.post(&register, &json!({"name": "edge-1"})).json();
        let node = registered["node_id"].as_str().unwrap();
        let fields = [(
            "x-service-node-key",
            registered["node_key"].as_str().unwrap(),
        )];
        let beat = format!("/api/v1/nodes/{node}/heartbeat");
        let heartbeat_request = json!({"health": {"cpu_percent": 12.5}});
        let beat = program
            .client()
            .send("POST", &beat, &fields, Some(&heartbeat_request));
        assert_eq!(beat.status, 200, "{}", beat.text);
        program.kill();

        let mut program = Program::start(CONTROLD, &arguments);
        let client = program.client().with_bearer(&key);
        let listed = client.get(&path).json();
        let names: Vec<&Value> = listed["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|project| &project["name"])
            .collect();
        assert_eq!(names, ["edge", "core"]);
        let node = client.get(&format!("{nodes}/{node}")).json();
        assert_eq!(node["cpu_percent"], 12.5, "{node}");
        assert!(program.terminate().success());
        let verified = run(&["audit", "verify"], &arguments);
        assert!(verified.status.success(), "{verified:?}");
    }
}

#[test]
fn an_archive_outlives_a_kill_in_a_folder_and_behind_s3() {
    let server = ObjectServer::start();
    server.create_bucket("archives");
    let url = format!("s3://archives/fleet?endpoint={}", server.url());
    for by_url in [false, true] {
        for database in databases() {
            let folder = tempfile::tempdir().unwrap();
            let mut arguments = arguments(folder.path(), &database);
            if by_url {
                arguments.extend(["--object-store".to_owned(), url.clone()]);
            }
            let variables = ObjectServer::variables();
            let mut program = Program::start_with(CONTROLD, &arguments, &variables);
            let made = set_up(&mut program);
            let key = made["api_key"]["secret"].as_str().unwrap().to_owned();
            let project = made["project"]["id"].as_str().unwrap();
            let path = format!("/api/v1/projects/{project}/bundles");
            let client = program.client().with_bearer(&key);
            let text = "listeners { listener \"a\" { address \"127.0.0.1:80\" } }";
            let body = json!({"name": "edge", "files": {"proxy.kdl": text}});
            let created = client.post(&path, &body);
            assert_eq!(created.status, 201, "{}", created.text);
            let bundle = created.json()["id"].as_str().unwrap().to_owned();
            program.kill();

            let mut program = Program::start_with(CONTROLD, &arguments, &variables);
            let client = program.client().with_bearer(&key);
            let verified = client.get(&format!("{path}/{bundle}/verify"));
            assert_eq!(verified.json()["valid"], true, "{}", verified.text);
            assert!(program.terminate().success());
            let in_folder = folder.path().join("objects").is_dir();
            assert_eq!(in_folder, !by_url, "the bytes lie in one place");
        }
    }
}

#[test]
fn a_user_that_is_locked_out_is_admitted_on_the_machine() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let email = ["--email", "ann@example.com"];
        let admin = |verb: &str, more: &[&str]| {
            let made = run(&[&["admin", verb], more].concat(), &arguments);
            let text = String::from_utf8(made.stdout).unwrap();
            (made.status.success(), text)
        };
        assert!(admin("create", &email).0);
        let (done, text) = admin("set-password", &email);
        let password = text.trim().strip_prefix("password ").unwrap();
        assert!(done, "{text}");
        assert!(!admin("set-password", &["--email", "b@example.com"]).0);
        assert!(!admin("reset-second-factor", &email).0, "there is none");
        let mut program = Program::start(CONTROLD, &arguments);
        let body = json!({"email": "ann@example.com", "password": password});
        let signed_in = program.client().post("/api/v1/sign-in", &body);
        assert_eq!(signed_in.status, 200, "{}", signed_in.text);
        assert_eq!(signed_in.json()["state"], "signed_in");
        assert!(program.terminate().success());
        let (done, text) = admin("end-sessions", &[]);
        assert!(done && text.starts_with("sessions ended "), "{text}");
        assert_ne!(text.trim(), "sessions ended 0");
    }
}

#[test]
fn single_sign_on_that_locked_everybody_out_is_switched_off_on_the_machine() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let address = ["--public-url", "https://controld.example"].map(str::to_owned);
        let mut program = Program::start(CONTROLD, &[&arguments[..], &address[..]].concat());
        let made = set_up(&mut program);
        let key = made["api_key"]["secret"].as_str().unwrap();
        let org = made["org"]["id"].as_str().unwrap();
        let client = program.client().with_bearer(key);
        let path = format!("/api/v1/orgs/{org}/sso");
        let connection = json!({"oidc": {
            "client_id": "controld", "client_secret": "s", "issuer": "https://idp.example",
            "group_mapping": {"default": "reader"},
        }});
        let connected = client.send("PUT", &path, &[], Some(&connection));
        assert_eq!(connected.status, 200, "{}", connected.text);
        let delete = |org: &str| run(&["admin", "delete-sso", "--org", org], &arguments);
        // SQLite permits only one process.
        assert!(program.terminate().success());
        assert!(!delete("other").status.success());
        let deleted = delete("acme");
        assert!(deleted.status.success(), "{deleted:?}");
        assert!(!delete("acme").status.success(), "already deleted");
        let program = Program::start(CONTROLD, &arguments);
        let client = program.client().with_bearer(key);
        assert_eq!(client.get(&path).json()["oidc"], Value::Null);
        let entries = client.get(&format!("/api/v1/orgs/{org}/audit")).json();
        let entries = entries["items"].as_array().unwrap().clone();
        let entry = entries.iter().find(|own| own["action"] == "sso.deleted");
        assert_eq!(entry.unwrap()["actor_kind"], "system", "{entries:?}");
    }
}

/// Signs in the administrator of [`set_up`]; returns the session cookie.
fn sign_in(program: &Program) -> String {
    let body = json!({"email": "ann@example.com", "password": "correct horse"});
    let client = program.client().obeying_rate_limits();
    let signed_in = client.post("/api/v1/sign-in", &body);
    assert_eq!(signed_in.status, 200, "{}", signed_in.text);
    let mut cookies = signed_in.headers.iter();
    let session = cookies.find(|(_, value)| value.starts_with("session="));
    let (_, field) = session.unwrap();
    field.split(';').next().unwrap().to_owned()
}

fn is_signed_in(program: &Program, cookie: &str) -> bool {
    let asked = [("cookie", cookie)];
    let me = program
        .client()
        .send("GET", "/api/v1/users/me", &asked, None);
    me.status == 200
}

/// Returns the paths of the interface that a page links to.
fn links_to_interface(page: &str) -> Vec<&str> {
    let links = page.split("href=\"").skip(1);
    let links = links.filter_map(|rest| rest.split('"').next());
    links.filter(|link| link.starts_with("/api/v1/")).collect()
}

/// Returns the head of a response to a browser, in lower case. The body may be binary.
fn head(program: &Program, path: &str, cookie: &str) -> String {
    let authority = program.base_url().strip_prefix("http://").unwrap();
    let mut stream = TcpStream::connect(authority).unwrap();
    let fields = format!("host: {authority}\r\nconnection: close\r\ncookie: {cookie}");
    let request = format!("GET {path} HTTP/1.1\r\n{fields}\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer).to_lowercase();
    let (head, _) = answer.split_once("\r\n\r\n").unwrap();
    format!("{head}\r\n")
}

#[test]
fn archives_and_the_audit_log_are_downloaded_from_their_pages() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let mut program = Program::start(CONTROLD, &arguments(folder.path(), &database));
        let made = set_up(&mut program);
        let text = |pointer: &str| made.pointer(pointer).unwrap().as_str().unwrap();
        let (org, project) = (text("/org/id"), text("/project/id"));
        let client = program.client().with_bearer(text("/api_key/secret"));
        let path = format!("/projects/{project}/bundles");
        let file = "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }";
        let bundle = json!({"name": "edge", "files": {"proxy.kdl": file}});
        let bundle = client.post(&format!("/api/v1{path}"), &bundle).json();
        assert_eq!(bundle["state"], "signed", "{bundle}");
        let bundle = format!("{path}/{}", bundle["id"].as_str().unwrap());
        let cookie = sign_in(&program);
        let get = |path: &str| {
            let fields = [("cookie", &*cookie)];
            program.client().send("GET", path, &fields, None)
        };
        for (page, types) in [
            (
                bundle,
                &["application/zstd", "application/vnd.cyclonedx+json"][..],
            ),
            (format!("/orgs/{org}/audit"), &["application/x-ndjson"]),
        ] {
            let page = get(&page);
            let links = links_to_interface(&page.text);
            assert_eq!(links.len(), types.len(), "{}", page.text);
            for (link, kind) in links.iter().zip(types) {
                let head = head(&program, link, &cookie);
                assert!(head.starts_with("http/1.1 200 "), "{link}: {head}");
                let kind = format!("\r\ncontent-type: {kind}\r\n");
                assert!(head.contains(&kind), "{link}: {head}");
            }
        }
    }
}

#[test]
fn a_restored_backup_brings_no_session_back() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let mut program = Program::start(CONTROLD, &arguments);
        let made = set_up(&mut program);
        let cookie = sign_in(&program);
        assert!(is_signed_in(&program, &cookie));
        let (invitation, token) = invite_and_enrol(&program, &made);
        let copy = folder.path().join("copy");
        let restored = if database.kind == "postgres" {
            // As in docs/operate/control-plane.md.
            let dump = postgres("pg_dump", &["--format=custom"], &copy, &database.url);
            assert!(dump.status.success(), "{dump:?}");
            assert!(program.terminate().success());
            let empty = Database::postgres();
            let file = copy.display().to_string();
            let restore = Command::new(postgres_program("pg_restore"))
                .args(["--no-owner", "--dbname", &empty.url, &file])
                .output();
            let restore = restore.unwrap();
            assert!(restore.status.success(), "{restore:?}");
            empty
        } else {
            let to = copy.display().to_string();
            let made = run(&["backup", "--to", &to], &arguments);
            assert!(made.status.success(), "{made:?}");
            assert!(!folder.path().join("copy.part").exists());
            // The original continues with its sessions.
            assert!(is_signed_in(&program, &cookie));
            assert!(program.terminate().success());
            for end in ["-wal", "-shm"] {
                drop(fs::remove_file(
                    folder.path().join(format!("control.db{end}")),
                ));
            }
            fs::copy(&copy, folder.path().join("control.db")).unwrap();
            database
        };
        let mut arguments = arguments;
        if restored.kind == "postgres" {
            arguments.truncate(2);
            arguments.extend(["--database".to_owned(), restored.url.clone()]);
        }
        let program = Program::start(CONTROLD, &arguments);
        assert!(!is_signed_in(&program, &cookie), "{}", restored.kind);
        // Everything else is copied, and the user signs in again.
        let anew = sign_in(&program);
        assert!(is_signed_in(&program, &anew));
        let body = json!({"user_name": "Bob", "password": "correct horse"});
        let client = program.client().obeying_rate_limits();
        let by_link = client.with_bearer(&invitation);
        let accepted = by_link.post("/api/v1/invitations/accept", &body);
        assert_eq!(accepted.status, 401, "{}", accepted.text);
        let register = format!("{}/nodes/register", project_path(&made));
        let by_token = client.with_bearer(&token);
        let registered = by_token.post(&register, &json!({"name": "edge-1"}));
        assert_eq!(registered.status, 401, "{}", registered.text);
    }
}

fn project_path(made: &Value) -> String {
    format!(
        "/api/v1/projects/{}",
        made["project"]["id"].as_str().unwrap()
    )
}

/// Returns the secrets of an invitation and of an enrolment token.
fn invite_and_enrol(program: &Program, made: &Value) -> (String, String) {
    let key = made["api_key"]["secret"].as_str().unwrap();
    let client = program.client().with_bearer(key);
    let secret = |path: &str, body: &Value| {
        let made = client.post(path, body);
        assert_eq!(made.status, 201, "{}", made.text);
        made.json()["secret"].as_str().unwrap().to_owned()
    };
    let path = format!(
        "/api/v1/orgs/{}/invitations",
        made["org"]["id"].as_str().unwrap()
    );
    let invitation = secret(
        &path,
        &json!({"email": "bob@example.com", "role": "reader"}),
    );
    let path = format!("{}/enrolment-tokens", project_path(made));
    let token = secret(&path, &json!({"name": "edge"}));
    (invitation, token)
}

/// A process that exceeds its file size limit is killed, and leaves what it has written.
#[test]
fn a_backup_is_its_owners_from_its_first_byte() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(folder.path(), &Database::sqlite());
    let mut program = Program::start(CONTROLD, &arguments);
    set_up(&mut program);
    assert!(program.terminate().success());
    let to = folder.path().join("copy");
    // Room for the index of the write-ahead log, and not for the copy.
    let script = "umask 0; ulimit -c 0; ulimit -f 128; exec \"$0\" \"$@\"";
    let killed = Command::new("sh")
        .args(["-c", script, CONTROLD, "backup", "--to"])
        .arg(&to)
        .args(&arguments)
        .output()
        .unwrap();
    assert!(killed.status.signal().is_some(), "{killed:?}");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let part = folder.path().join("copy.part");
    assert!(0 < fs::metadata(&part).unwrap().len());
    assert_eq!(mode(&part), 0o600);
    let done = Command::new("sh")
        .args([
            "-c",
            "umask 0; exec \"$0\" \"$@\"",
            CONTROLD,
            "backup",
            "--to",
        ])
        .arg(&to)
        .args(&arguments)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    assert_eq!(mode(&to), 0o600);
    assert!(!part.exists());
}

#[test]
fn every_credential_ends_on_the_machine() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let mut program = Program::start(CONTROLD, &arguments);
        let made = set_up(&mut program);
        let cookie = sign_in(&program);
        let (invitation, token) = invite_and_enrol(&program, &made);
        assert!(program.terminate().success());
        let done = run(&["admin", "end-credentials"], &arguments);
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        let (sessions, others) = text.split_once('\n').unwrap();
        assert_ne!(sessions, "sessions ended 0");
        assert_eq!(
            others,
            "API keys ended 1\nenrolment tokens ended 1\ninvitations ended 1\n"
        );
        let program = Program::start(CONTROLD, &arguments);
        assert!(!is_signed_in(&program, &cookie));
        let key = made["api_key"]["secret"].as_str().unwrap();
        for secret in [key, &invitation, &token] {
            let client = program.client().obeying_rate_limits();
            let refused = client.with_bearer(secret).get("/api/v1/orgs");
            assert_eq!(refused.status, 401, "{}", refused.text);
        }
        let anew = sign_in(&program);
        let org = made["org"]["id"].as_str().unwrap();
        let path = format!("/api/v1/orgs/{org}/audit");
        let entries = program
            .client()
            .send("GET", &path, &[("cookie", anew.as_str())], None);
        for action in [
            "api_key.revoked",
            "enrolment_token.revoked",
            "invitation.deleted",
        ] {
            assert!(entries.text.contains(action), "{action}: {}", entries.text);
        }
    }
}

/// Tables with rows that a backup omits.
const PERISHABLE: [&str; 7] = [
    "sessions",
    "invitations",
    "enrolment_tokens",
    "pending_sign_ins",
    "password_resets",
    "sign_in_attempts",
    "sign_in_tickets",
];

fn postgres(program: &str, arguments: &[&str], to: &Path, url: &str) -> Output {
    let without = PERISHABLE.map(|table| format!("--exclude-table-data={table}"));
    let page = include_str!("../../../docs/operate/control-plane.md");
    for exclusion in &without {
        assert!(page.contains(exclusion.as_str()), "{exclusion}");
    }
    let mut command = Command::new(postgres_program(program));
    let command = command.args(arguments).args(without).arg("--file").arg(to);
    command.arg(url).output().unwrap()
}

fn postgres_program(name: &str) -> PathBuf {
    let versions = fs::read_dir("/usr/lib/postgresql").unwrap();
    let mut found: Vec<PathBuf> = versions
        .map(|entry| entry.unwrap().path().join("bin").join(name))
        .filter(|program| program.is_file())
        .collect();
    found.sort();
    found.pop().unwrap()
}

#[test]
fn an_administrator_is_made_without_the_link() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let create = ["admin", "create", "--email", "ann@example.com"];
        let key_name = ["--api-key-name", "first"];
        let made = run(&[&create[..], &key_name[..]].concat(), &arguments);
        assert!(made.status.success(), "{made:?}");
        let text = String::from_utf8(made.stdout).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("api key "));
        let again = run(&create, &arguments);
        assert!(!again.status.success(), "the address is taken");

        let program = Program::start(CONTROLD, &arguments);
        let client = program.client().with_bearer(line.unwrap());
        let orgs = client.get("/api/v1/orgs").json();
        assert_eq!(orgs["items"][0]["name"], "default");
    }
}

#[test]
fn an_administrator_who_lost_the_password_makes_no_second_organization() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let create = |email: &str, more: &[&str]| {
            let create = ["admin", "create", "--email", email];
            run(&[&create[..], more].concat(), &arguments)
        };
        let first = create("ann@example.com", &["--org-name", "acme"]);
        assert!(first.status.success(), "{first:?}");
        let second = create("bob@example.com", &[]);
        let text = String::from_utf8(second.stdout).unwrap();
        assert!(
            text.contains("administrator bob@example.com of acme"),
            "{text}"
        );
        let third = create("eve@example.com", &["--org-name", "other"]);
        assert!(third.status.success(), "{third:?}");
        let unclear = create("joe@example.com", &[]);
        assert!(!unclear.status.success(), "two organizations");
    }
}

#[test]
fn a_stop_ends_long_polls() {
    for database in databases() {
        let folder = tempfile::tempdir().unwrap();
        let arguments = arguments(folder.path(), &database);
        let mut program = Program::start(CONTROLD, &arguments);
        let made = set_up(&mut program);
        let key = made["api_key"]["secret"].as_str().unwrap();
        let project = made["project"]["id"].as_str().unwrap();
        let client = program.client();
        let registered = client.with_bearer(key).post(
            &format!("/api/v1/projects/{project}/nodes/register"),
            &json!({"name": "edge-1"}),
        );
        assert_eq!(registered.status, 201, "{}", registered.text);
        let registered = registered.json();
        let node = registered["node_id"].as_str().unwrap().to_owned();
        let key = registered["node_key"].as_str().unwrap().to_owned();
        let poller = client.clone();
        let poll = std::thread::spawn(move || {
            let fields = [("x-service-node-key", &*key), ("if-none-match", "\"0\"")];
            let path = format!("/api/v1/nodes/{node}/desired?wait=30");
            poller.send("GET", &path, &fields, None)
        });
        let clock = Stopwatch::start();
        while !client.get("/metrics").text.contains("control_long_polls 1") {
            assert!(clock.elapsed() < DEADLINE, "no long poll is counted");
        }
        let clock = Stopwatch::start();
        assert!(program.terminate().success());
        assert_eq!(poll.join().unwrap().status, 304);
        assert!(clock.elapsed() < DEADLINE, "{:?}", clock.elapsed());
    }
}

/// Returns the head of a response over TLS, to a client with these root certificates.
fn head_over_tls(program: &Program, roots: RootCertStore) -> String {
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let address = program.base_url().strip_prefix("https://").unwrap();
    let name = ServerName::try_from("127.0.0.1").unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(address).unwrap());
    let request = "GET /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let lines = BufReader::new(stream).lines().map(Result::unwrap);
    let head = lines.take_while(|line| !line.is_empty());
    head.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_program_with_a_certificate_sends_hsts() {
    let folder = tempfile::tempdir().unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let certificate = file("cert.pem", &made.cert.pem());
    let key = file("key.pem", &made.signing_key.serialize_pem());
    let mut secured = arguments(&folder.path().join("secured"), &Database::sqlite());
    secured.extend(["--tls-cert".to_owned(), certificate]);
    secured.extend(["--tls-key".to_owned(), key]);
    let program = Program::start(CONTROLD, &secured);
    let mut roots = RootCertStore::empty();
    roots.add(made.cert.der().clone()).unwrap();
    let head = head_over_tls(&program, roots);
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let field = "strict-transport-security: max-age=31536000";
    assert!(head.contains(field), "{head}");
    // Without `Strict-Transport-Security`: behind a balancer or on this machine, other services of
    // the host may have no TLS.
    let plain = arguments(&folder.path().join("plain"), &Database::sqlite());
    let answer = Program::start(CONTROLD, &plain).client().get("/sign-in");
    assert_eq!(answer.status, 200);
    let has = |name: &str| answer.headers.iter().any(|(own, _)| own == name);
    assert!(has("content-security-policy"), "{:?}", answer.headers);
    assert!(!has("strict-transport-security"), "{:?}", answer.headers);
}

#[test]
fn sign_in_before_the_set_up_leads_to_its_link() {
    let folder = tempfile::tempdir().unwrap();
    let program = Program::start(CONTROLD, &arguments(folder.path(), &Database::sqlite()));
    let page = program.client().get("/sign-in");
    assert_eq!(page.status, 200, "{}", page.text);
    assert!(
        page.text.contains("This control plane has no user yet."),
        "{}",
        page.text
    );
    assert!(!page.text.contains("name=\"password\""), "{}", page.text);
}

#[test]
fn it_reports_its_health() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::sqlite();
    let mut program = Program::start(CONTROLD, &arguments(folder.path(), &database));
    let client = program.client();
    assert_eq!(client.get("/health").json()["status"], "healthy");
    assert_eq!(client.get("/ready").json()["status"], "ready");
    assert_eq!(client.get("/api/v1/orgs").status, 401);
    let metrics = client.get("/metrics").text;
    let counted = "control_requests_total{route=\"/api/v1/orgs\",status=\"401\"} 1";
    assert!(metrics.contains(counted), "{metrics}");
    // Counters of failures appear with the first failure, and clocks are compared only with
    // PostgreSQL's.
    let of_failures = ["tls_", "_failures", "rate_limited", "clock_offset"];
    for metric in control_app::metric::METRICS {
        let name = metric.name;
        if of_failures.iter().any(|part| name.contains(part)) {
            continue;
        }
        control_testkit::until(name, || {
            let text = client.get("/metrics").text;
            text.contains(&format!("# HELP {name} ")) && text.contains(&format!("\n{name}"))
        });
    }
    assert!(program.terminate().success());
}
