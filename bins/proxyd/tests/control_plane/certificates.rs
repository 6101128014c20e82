//! Certificates on their way to nodes, and those of the control plane itself.

use crate::world::{PROXYD, World};
use proxy_testkit::{Launch, free_port};
use serde_json::json;
use std::fs;
use std::process::Command;

#[test]
fn a_private_key_reaches_the_node_and_no_disk() {
    let world = World::start();
    let proxyd = world.node("node");
    let node = world.node_id();
    let made = rcgen::generate_simple_self_signed(vec!["a.example.com".to_owned()]).unwrap();
    let key = made.signing_key.serialize_pem();
    let certificate = world.post(
        "certificates",
        &json!({"name": "a", "chain_pem": made.cert.pem(), "private_key_pem": key}),
    );
    let certificate = certificate.json()["id"].clone();
    let upstream = json!({"name": "u", "targets": [{"address": "127.0.0.1:9"}]});
    let upstream = world.post("upstreams", &upstream).json()["id"].clone();
    let service = json!({
        "name": "a", "host": "a.example.com", "certificate": certificate, "upstream": upstream,
    });
    world.post("services", &service);
    let (http, https) = (free_port(), free_port());
    let addresses = json!({
        "http": format!("127.0.0.1:{http}"), "https": format!("127.0.0.1:{https}"),
    });
    let bundle = world
        .post("bundles", &json!({"name": "edge", "services": addresses}))
        .json();
    assert_eq!(bundle["state"], "signed", "{bundle}");
    let bundle = bundle["id"].as_str().unwrap().to_owned();
    world.assign(&bundle, &node);
    let status = world.verdict(&node, &bundle);
    assert_eq!(status["verdict"], "accepted", "{status}");
    let shown = Command::new("openssl")
        .args(["s_client", "-servername", "a.example.com", "-connect"])
        .arg(format!("127.0.0.1:{https}"))
        .stdin(std::process::Stdio::null())
        .output();
    let shown = String::from_utf8_lossy(&shown.unwrap().stdout).into_owned();
    let first_line = made.cert.pem().lines().nth(1).unwrap().to_owned();
    assert!(shown.contains(&first_line), "{shown}");
    let secret = key.lines().nth(1).unwrap();
    let found = Command::new("grep")
        .args(["-r", "-l", secret])
        .arg(world.folder.path().join("node"))
        .output();
    assert_eq!(found.unwrap().stdout, b"", "the key is on the disk");
    drop(proxyd);
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
