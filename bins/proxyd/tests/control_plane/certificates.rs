//! Delivery of certificates to nodes, and the control plane's own certificates.

use crate::world::{PROXYD, World};
use control_testkit::until;
use proxy_testkit::{Launch, Proxyd, free_port};
use rcgen::{CertifiedKey, KeyPair};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

/// A certificate of the control plane, and a service that a node serves with it.
struct TlsService {
    world: World,
    node: String,
    proxyd: Proxyd,
    certificate: String,
    https: u16,
}

impl TlsService {
    fn start(made: &CertifiedKey<KeyPair>) -> (Self, String) {
        let world = World::start_with(&["--heartbeat-secs", "1"]);
        let proxyd = world.node("node");
        let node = world.node_id();
        let certificate = world.post("certificates", &request(made)).json()["id"].clone();
        let upstream = json!({"name": "u", "targets": [{"address": "127.0.0.1:9"}]});
        let upstream = world.post("upstreams", &upstream).json()["id"].clone();
        let service = json!({
            "name": "a", "host": HOST, "certificate": certificate, "upstream": upstream,
        });
        world.post("services", &service);
        let service = Self {
            world,
            node,
            proxyd,
            certificate: certificate.as_str().unwrap().to_owned(),
            https: free_port(),
        };
        let bundle = service.bundle();
        service.run(&bundle);
        (service, bundle)
    }

    /// A bundle of the current services.
    fn bundle(&self) -> String {
        let addresses = json!({
            "http": format!("127.0.0.1:{}", free_port()),
            "https": format!("127.0.0.1:{}", self.https),
        });
        let body = json!({"name": "edge", "services": addresses});
        let bundle = self.world.post("bundles", &body).json();
        assert_eq!(bundle["state"], "signed", "{bundle}");
        bundle["id"].as_str().unwrap().to_owned()
    }

    fn run(&self, bundle: &str) {
        self.world.assign(bundle, &self.node);
        let status = self.world.verdict(&self.node, bundle);
        assert_eq!(status["verdict"], "accepted", "{status}");
    }

    fn renew(&self, made: &CertifiedKey<KeyPair>) {
        let path = self
            .world
            .path(&format!("certificates/{}", self.certificate));
        let answer = self
            .world
            .operator
            .send("PUT", &path, &[], Some(&request(made)));
        assert_eq!(answer.status, 200, "{}", answer.text);
    }

    /// Returns true if a new connection is served this certificate.
    fn serves(&self, made: &CertifiedKey<KeyPair>) -> bool {
        let shown = Command::new("openssl")
            .args(["s_client", "-servername", HOST, "-connect"])
            .arg(format!("127.0.0.1:{}", self.https))
            .stdin(Stdio::null())
            .output();
        let shown = String::from_utf8_lossy(&shown.unwrap().stdout).into_owned();
        shown.contains(made.cert.pem().lines().nth(1).unwrap())
    }
}

const HOST: &str = "a.example.com";

fn self_signed() -> CertifiedKey<KeyPair> {
    rcgen::generate_simple_self_signed(vec![HOST.to_owned()]).unwrap()
}

fn request(made: &CertifiedKey<KeyPair>) -> Value {
    json!({
        "name": "a", "chain_pem": made.cert.pem(),
        "private_key_pem": made.signing_key.serialize_pem(),
    })
}

#[test]
fn a_private_key_lies_on_no_disk_in_the_clear() {
    let made = self_signed();
    let (service, _) = TlsService::start(&made);
    assert!(service.serves(&made));
    let key = made.signing_key.serialize_pem();
    let found = Command::new("grep")
        .args(["-r", "-l", key.lines().nth(1).unwrap()])
        .arg(service.world.folder.path().join("node"))
        .output();
    assert_eq!(found.unwrap().stdout, b"", "the key is on the disk");
}

#[test]
fn a_node_that_restarts_without_the_control_plane_serves_tls() {
    let made = self_signed();
    let (mut service, _) = TlsService::start(&made);
    assert!(service.serves(&made));
    service.world.kill();
    service.proxyd.terminate();
    service.proxyd.wait();
    service.proxyd = service.world.node("node");
    until("the certificate is served again", || service.serves(&made));
}

#[test]
fn another_key_of_the_machine_opens_no_private_key() {
    let made = self_signed();
    let (mut service, _) = TlsService::start(&made);
    let world = &mut service.world;
    world.kill();
    service.proxyd.terminate();
    service.proxyd.wait();
    let key = world.folder.path().join("other.key");
    fs::write(&key, [7; 32]).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    let setting = format!("machine-key-file \"{}\"\n    url", key.display());
    let own = world.own("node", &world.url).replacen("url", &setting, 1);
    service.proxyd = Launch::new(PROXYD, &own).start();
    let waits = "the last good bundle waits for its private keys";
    let printed = service.proxyd.stderr();
    drop(printed.find(0, |record| record.text("message") == waits));
    assert!(!service.serves(&made));
}

#[test]
fn a_renewed_certificate_is_served_without_another_bundle() {
    let (first, second, third) = (self_signed(), self_signed(), self_signed());
    let (mut service, old) = TlsService::start(&first);
    service.renew(&second);
    until("the renewed certificate is served", || {
        service.serves(&second)
    });
    let view = service.world.view(&service.node);
    assert_eq!(view["desired"]["order"], 1, "no order was needed: {view}");
    assert_eq!(view["diagnostics"], json!([]), "{view}");
    // A newer bundle, and back to the one that holds the first chain.
    let new = service.bundle();
    service.run(&new);
    service.run(&old);
    assert!(
        service.serves(&second),
        "an old bundle with the new certificate"
    );
    // A node that starts with the old bundle, and is notified of a renewal that it missed.
    service.proxyd.terminate();
    service.proxyd.wait();
    service.renew(&third);
    service.proxyd = service.world.node("node");
    until("the bundle is served again", || service.serves(&third));
}

#[test]
fn a_node_trusts_only_the_roots_of_its_ca_file() {
    let world = World::start();
    let folder = world.folder.path();
    for name in ["right", "wrong"] {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
        fs::write(folder.join(format!("{name}.pem")), made.cert.pem()).unwrap();
        fs::write(
            folder.join(format!("{name}.key")),
            made.signing_key.serialize_pem(),
        )
        .unwrap();
    }
    let (port, path) = (free_port(), folder.display());
    let target = world.url.strip_prefix("http://").unwrap();
    let front = format!(
        "worker-threads 1\nlisteners {{ listener \"front\" {{ address \"127.0.0.1:{port}\"; \
         protocol \"https\"; tls {{ cert-file \"{path}/right.pem\"; key-file \"{path}/right.key\" }} }} }}\n\
         routes {{ route \"all\" {{ upstream \"control\" }} }}\n\
         upstreams {{ upstream \"control\" {{ target \"{target}\" }} }}\n"
    );
    let _front = Launch::new(PROXYD, &front).start();
    let url = format!("https://127.0.0.1:{port}");
    let own = |name: &str| {
        let own = world.own(name, &url);
        let ca = format!("ca-file \"{path}/{name}.pem\"\n    url");
        own.replacen("url", &ca, 1)
    };
    let stranger = Launch::new(PROXYD, &own("wrong")).start();
    let refused = stranger
        .stderr()
        .find(0, |record| record.text("message") == "control plane");
    assert!(refused.text("fault").contains("certificate"), "{refused:?}");
    let _node = Launch::new(PROXYD, &own("right")).start();
    assert_eq!(world.view(&world.node_id())["name"], "right");
    let nodes = world.get("nodes");
    assert_eq!(nodes["items"].as_array().map(Vec::len), Some(1), "{nodes}");
}
