//! Pebble with a name server, on free ports of this machine.

pub(crate) mod curl;

use crate::deadline::EVENT_TIMEOUT;
use crate::dns_server::DnsServer;
use crate::ports::free_port;
use curl::fetch;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose,
};
use std::fs;
use std::io::{Write, stderr};
use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::park_timeout;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The identifier and the MAC key of an external account, as configured in Pebble.
pub const EXTERNAL_ACCOUNT: (&str, &str) = (
    "kid-1",
    "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W",
);

/// A running authority; killed when dropped.
#[derive(Debug)]
pub struct Pebble {
    process: Child,
    folder: TempDir,
    /// The name server that the authority uses for validation.
    pub dns: DnsServer,
    port: u16,
    management_port: u16,
    /// The port of HTTP-01 validation.
    pub http_port: u16,
    /// The port of TLS-ALPN-01 validation.
    pub tls_port: u16,
}

/// The authority's policy.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// Validity of certificates, in seconds.
    pub validity_secs: u64,
    /// Accounts must be bound to external ones.
    pub needs_external_account: bool,
}

impl Policy {
    /// 90 days, without external accounts.
    pub const USUAL: Self = Self {
        validity_secs: 90 * 24 * 3600,
        needs_external_account: false,
    };
}

impl Pebble {
    /// Starts an authority that resolves no name yet, and waits until it listens.
    #[track_caller]
    pub fn start(policy: Policy) -> Self {
        let folder = tempfile::tempdir().expect("a test folder is created");
        let [port, management_port, http_port, tls_port] = std::array::from_fn(|_| free_port());
        write_server_certificate(&folder);
        let (key_id, key) = EXTERNAL_ACCOUNT;
        let path = |name: &str| folder.path().join(name).display().to_string();
        let config = format!(
            r#"{{"pebble": {{
                "listenAddress": "127.0.0.1:{port}",
                "managementListenAddress": "127.0.0.1:{management_port}",
                "certificate": "{}", "privateKey": "{}",
                "httpPort": {http_port}, "tlsPort": {tls_port},
                "ocspResponderURL": "",
                "externalAccountBindingRequired": {},
                "externalAccountMACKeys": {{"{key_id}": "{key}"}},
                "certificateValidityPeriod": {}
            }}}}"#,
            path("server.crt"),
            path("server.key"),
            policy.needs_external_account,
            policy.validity_secs
        );
        fs::write(folder.path().join("pebble.json"), config).expect("the test folder is writable");
        let dns = DnsServer::start();
        let log = fs::File::create(folder.path().join("log")).expect("the test folder is writable");
        let process = Command::new("pebble")
            .args(["-config", &path("pebble.json")])
            .args(["-dnsserver", &dns.address().to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .env("PEBBLE_WFE_NONCEREJECT", "0")
            .env("PEBBLE_AUTHZREUSE", "0")
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("the log's descriptor is duplicated"))
            .stderr(log)
            .spawn();
        let process = process.expect("pebble is installed by `cargo xtask setup`");
        let pebble = Self {
            process,
            folder,
            dns,
            port,
            management_port,
            http_port,
            tls_port,
        };
        wait_for(port);
        wait_for(management_port);
        pebble
    }

    /// Resolves `host` to this machine.
    pub fn resolve(&self, host: &str) {
        let here = IpAddr::V4(Ipv4Addr::LOCALHOST);
        self.dns.set_addresses(host, &[here]);
    }

    /// URL of the ACME directory.
    pub fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    /// File with the root of the authority's HTTPS server.
    pub fn server_roots(&self) -> PathBuf {
        self.folder.path().join("root.crt")
    }

    /// File with the root of the issued certificates.
    #[track_caller]
    pub fn issued_roots(&self) -> PathBuf {
        let url = format!("https://localhost:{}/roots/0", self.management_port);
        let root = fetch(&url, &self.server_roots());
        let file = self.folder.path().join("issued.crt");
        fs::write(&file, root).expect("the test folder is writable");
        file
    }

    /// The log until now, with standard error.
    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).expect("the log is readable")
    }

    /// Kills the process, and waits for its end.
    pub fn stop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

impl Drop for Pebble {
    fn drop(&mut self) {
        if std::thread::panicking() {
            drop(writeln!(stderr(), "pebble:\n{}", self.log()));
        }
        self.stop();
    }
}

/// A certificate of the authority's own server, with its root.
fn write_server_certificate(folder: &TempDir) {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "own");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let root =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key is generated"))
            .expect("the root is signed");
    let key = KeyPair::generate().expect("a key is generated");
    let params =
        CertificateParams::new(vec!["localhost".to_owned()]).expect("`localhost` is a valid name");
    let certificate = params
        .signed_by(&key, &root)
        .expect("the certificate is signed");
    let files = [
        ("root.crt", root.pem()),
        ("server.crt", certificate.pem()),
        ("server.key", key.serialize_pem()),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("the test folder is writable");
    }
}

/// Waits until a program listens at `port`, which it does not report.
#[expect(clippy::disallowed_methods, reason = "the wait has a deadline")]
#[track_caller]
fn wait_for(port: u16) {
    let begun = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(
            begun.elapsed() < EVENT_TIMEOUT,
            "pebble does not listen at port {port}"
        );
        park_timeout(Duration::from_millis(5));
    }
}
