//! The site of `docs/learn/five-services.md` with certificates of Pebble: the example, and the same site as files of nginx,
//! Caddy and Traefik after `config migrate`. Differences between them are on the page.

mod requests;

use crate::support::{Authority, BINARY};
use aws_lc_rs::hmac;
use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use proxy_testkit::{Launch, Pebble, Policy, Proxyd, Request, Upstream, ok};
use requests::{CASES, Case, DIFFERENCES, NOTES, Server};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const HOSTS: [&str; 7] = [
    "www.example.com",
    "example.com",
    "shop.example.com",
    "wiki.example.com",
    "auth.example.com",
    "tools.example.com",
    "docs.example.com",
];

/// The targets by their ports in the files, with the header fields that each repeats.
const TARGETS: [(u16, &str, &[&str]); 8] = [
    (3000, "www", &[]),
    (3001, "shop", &["x-real-ip"]),
    (3002, "shop", &["x-real-ip"]),
    (3003, "api", &["x-user"]),
    (3004, "wiki", &["remote-user"]),
    (3005, "tools", &["x-user"]),
    (3006, "docs", &["host", "x-original-url"]),
    (9091, "auth", &[]),
];

const SECRET: &str = "correct horse battery staple and more";
const USERS: &str = "ann:$2y$04$co9osgv9qGuwPD/XdNUES.f2whZRS2F1aiA/sEoPTBqLenVJfvbqS\n";

/// The files and targets of the site, and its authority.
struct Site {
    folder: TempDir,
    targets: Vec<(u16, Upstream)>,
    pebble: Pebble,
}

impl Site {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["srv/www", "etc/proxyd", "etc/ssl"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        write("srv/www/index.html", "www /");
        write("etc/proxyd/api.secret", SECRET);
        write("etc/proxyd/tools.users", USERS);
        let targets = TARGETS.map(|(port, name, fields)| (port, target(name, fields)));
        let pebble = Pebble::start(Policy::USUAL);
        for host in HOSTS {
            pebble.resolve(host);
        }
        Self {
            folder,
            targets: targets.into(),
            pebble,
        }
    }

    /// A file with the paths of this test.
    fn with_paths(&self, text: &str) -> String {
        let folder = self.folder.path().display();
        text.replace("/srv/www", &format!("{folder}/srv/www"))
            .replace("/etc/", &format!("{folder}/etc/"))
    }

    /// A configuration with the addresses and the authority of this test.
    fn with_addresses(&self, kdl: &str) -> String {
        let Pebble {
            http_port,
            tls_port,
            ..
        } = self.pebble;
        let staging = "directory \"https://acme-staging-v02.api.letsencrypt.org/directory\"";
        let own = format!(
            "directory \"{}\"; directory-ca-file \"{}\"; storage \"{}\"",
            self.pebble.directory(),
            self.pebble.server_roots().display(),
            self.folder.path().join("acme").display()
        );
        let mut kdl = kdl.replace(staging, &own);
        for (port, target) in [(80, http_port), (443, tls_port)] {
            // Requests name their clients.
            let trusted = format!("\"127.0.0.1:{target}\"; trusted-proxies \"127.0.0.1\"");
            kdl = kdl.replace(&format!("\"0.0.0.0:{port}\""), &trusted);
        }
        for (port, target) in &self.targets {
            let address = format!("\"{}\"", target.address());
            kdl = kdl.replace(&format!("\"127.0.0.1:{port}\""), &address);
        }
        kdl
    }

    /// The result of `config migrate` for a server's file, and the directives that it lists.
    fn migrated(&self, server: Server) -> (String, String) {
        let examples = examples().join("five-services");
        for name in server.files() {
            let text = fs::read_to_string(examples.join(name)).unwrap();
            fs::write(self.folder.path().join(name), self.with_paths(&text)).unwrap();
        }
        let file = self.folder.path().join(server.files()[0]);
        let result = self.folder.path().join(format!("{}.kdl", server.name()));
        let printed = proxyd(&[
            "config".as_ref(),
            "migrate".as_ref(),
            "--from".as_ref(),
            server.name().as_ref(),
            file.as_ref(),
            "--output".as_ref(),
            result.as_ref(),
        ]);
        (fs::read_to_string(result).unwrap(), printed)
    }

    /// Checks a file by `--test`, then starts proxyd and waits for the certificates of these hosts.
    fn start(&self, kdl: &str, awaited: &[&str]) -> Proxyd {
        let file = self.folder.path().join("site.kdl");
        fs::write(&file, kdl).unwrap();
        let tested = proxyd(&["--test".as_ref(), "--config".as_ref(), file.as_ref()]);
        assert!(tested.contains("test is successful"), "{tested}");
        // Tests name listeners, which `start` would wait for.
        let settings = kdl.split("\ntests {").next().unwrap();
        let proxyd = Launch::new(BINARY, settings).start();
        for host in awaited {
            let name = format!("/{host}-");
            let _in_use = proxyd.stderr().find(0, |record| {
                record.text("message") == "a new certificate is in use"
                    && record.text("file").contains(&name)
            });
        }
        proxyd
    }

    /// The outcome of a case, as [`Case::outcome`] has it.
    fn ask(&self, case: &Case, roots: &Path) -> String {
        let (scheme, rest) = case.url.split_once("://").unwrap();
        let (host, path) = rest.split_at(rest.find('/').unwrap());
        let port = match scheme {
            "http" => self.pebble.http_port,
            _ => self.pebble.tls_port,
        };
        let fields = case.fields.iter().flat_map(|field| {
            let field = field.replace("TOKEN", &token());
            ["--header".to_owned(), field]
        });
        let output = Command::new("curl")
            .args(["--silent", "--show-error", "--max-time", "20"])
            .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
            .arg("--cacert")
            .arg(roots)
            .args(fields)
            .args(["--write-out", WRITTEN])
            .arg(format!("{scheme}://{host}:{port}{path}"))
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{}: {error}", case.title);
        let text = String::from_utf8(output.stdout).unwrap();
        let (body, rest) = text.rsplit_once('\n').unwrap();
        let (status, rest) = rest.split_once('|').unwrap();
        let (location, fields) = rest.split_once('|').unwrap();
        let shown = match status {
            "200" => format!("{body} {fields}"),
            _ => location.to_owned(),
        };
        let outcome = format!("{status} {shown}").replace(&format!(":{port}"), "");
        let words: Vec<&str> = outcome.split_whitespace().collect();
        words.join(" ")
    }
}

const WRITTEN: &str =
    "\n%{http_code}|%{redirect_url}|%header{x-frame-options} %header{cache-control}";

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn page() -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join("learn/five-services.md")).unwrap()
}

/// Runs the binary, and returns what it printed.
#[track_caller]
fn proxyd(arguments: &[&std::ffi::OsStr]) -> String {
    let output = Command::new(BINARY).args(arguments).output().unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(output.status.success(), "{out}\n{err}");
    out
}

/// A target that repeats its path and fields of the request, or decides as a login server.
fn target(name: &'static str, fields: &'static [&'static str]) -> Upstream {
    Upstream::start(move |served| {
        while let Some(request) = served.request() {
            if request.target.starts_with("/api/authz/") {
                served.send(verdict(&request));
                continue;
            }
            let mut body = format!("{name} {}", request.target);
            for field in fields {
                let value = request.fields.get(field).unwrap_or("none");
                body = format!("{body} {field}={value}");
            }
            served.send(ok(&body));
        }
    })
}

/// The answer of `/api/authz/forward-auth` of Authelia, or of `/api/authz/auth-request`, which has no redirect.
fn verdict(request: &Request) -> String {
    let field = |name: &str| request.fields.get(name).unwrap_or_default();
    if field("cookie") == "session=ann" {
        return "HTTP/1.1 200 OK\r\nRemote-User: ann\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    if request.target.ends_with("/auth-request") {
        return "HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n".to_owned();
    }
    format!(
        "HTTP/1.1 302 Found\r\nLocation: https://auth.example.com/?rd={}{}\r\nContent-Length: 0\r\n\r\n",
        field("x-forwarded-host"),
        field("x-forwarded-uri")
    )
}

/// A token of the shop's API, for `ann`.
fn token() -> String {
    let part = |text: &str| BASE64_URL_SAFE_NO_PAD.encode(text);
    let header = part(r#"{"alg":"HS256","typ":"JWT"}"#);
    let claims =
        part(r#"{"iss":"https://shop.example.com","aud":"api","sub":"ann","exp":4102444800}"#);
    let message = format!("{header}.{claims}");
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes());
    let tag = hmac::sign(&key, message.as_bytes());
    format!("{message}.{}", BASE64_URL_SAFE_NO_PAD.encode(tag))
}

#[test]
fn the_example_serves_five_services_with_certificates_of_an_authority() {
    let site = Site::new();
    let text = fs::read_to_string(examples().join("configs/five-services.kdl")).unwrap();
    let settings = text.find("listeners {").and_then(|at| text.get(at..));
    let settings = settings.and_then(|it| it.split("\ntests {").next());
    assert!(
        page().contains(settings.unwrap()),
        "the page shows the example"
    );
    let text = site.with_addresses(&site.with_paths(&text));
    let _proxyd = site.start(&text, &["www.example.com"]);
    let roots = site.pebble.issued_roots();
    for case in CASES {
        assert_eq!(site.ask(case, &roots), case.outcome, "{}", case.title);
    }
}

#[test]
fn files_of_three_servers_become_the_same_site_but_for_what_the_page_names() {
    let page = page();
    let site = Site::new();
    let folder = site.folder.path();
    let authority = Authority::new("root");
    authority.issue(&HOSTS).write(folder, "site");
    fs::rename(folder.join("site.crt"), folder.join("etc/ssl/site.pem")).unwrap();
    fs::rename(folder.join("site.key"), folder.join("etc/ssl/site.key")).unwrap();
    let own_root = authority.write(folder, "own.pem");
    let mut wrong: Vec<String> = Vec::new();
    for server in [Server::Nginx, Server::Caddy, Server::Traefik] {
        let (text, printed) = site.migrated(server);
        wrong.extend(server.unexpected_notes(&printed));
        let _proxyd = site.start(&site.with_addresses(&text), server.first_hosts());
        let roots = match server {
            Server::Nginx => own_root.clone(),
            Server::Caddy | Server::Traefik => site.pebble.issued_roots(),
        };
        for case in CASES {
            let (outcome, expected) = (site.ask(case, &roots), case.outcome_of(server));
            if outcome != expected {
                wrong.push(format!("{}: {}: {outcome}", server.name(), case.title));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    for row in DIFFERENCES
        .iter()
        .map(|it| it.row)
        .chain(NOTES.iter().map(|(_, note)| *note))
    {
        assert!(page.contains(row), "{row}");
    }
}
