//! Certificates that a node obtains by itself, for the listeners of a bundle.

use crate::world::{PROXYD, World, poll_until};
use proxy_testkit::{Launch, Pebble, Policy, Proxyd, Upgrade, https};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

const HOST: &str = "a.test";

/// Starts a node whose bundles may obtain certificates in `storage`.
fn node(world: &World, storage: &Path) -> Proxyd {
    let allowed = format!("allow {{ acme-storages \"acme={}\";", storage.display());
    let own = world.own("node", &world.url);
    Launch::new(PROXYD, &own.replace("allow {", &allowed)).start()
}

/// The certificate's file below `folder`.
fn stored_certificate(folder: &Path) -> Option<PathBuf> {
    let mut found = fs::read_dir(folder)
        .ok()?
        .map(|entry| entry.unwrap().path());
    found.find_map(|path| {
        if path.is_dir() {
            return stored_certificate(&path);
        }
        let is_it = path.extension().is_some_and(|extension| extension == "pem");
        is_it.then_some(path)
    })
}

#[test]
fn a_bundle_is_served_after_its_stored_certificate_was_damaged() {
    let pebble = Pebble::start(Policy::USUAL);
    pebble.resolve(HOST);
    let world = World::start_with(&["--heartbeat-secs", "1"]);
    let storage = world.folder.path().join("acme");
    let proxyd = node(&world, &storage);
    let kdl = format!(
        r#"listeners {{
            listener "web" {{ address "127.0.0.1:{}" }}
            listener "secure" {{
                address "127.0.0.1:{}"
                protocol "https"
                tls {{
                    acme {{
                        hosts "{HOST}"
                        email "ops@example.com"
                        terms-agreed #true
                        directory "{}"
                        directory-ca-file "root.crt"
                        storage "acme"
                    }}
                }}
            }}
        }}
        routes {{ route "all" {{ respond 200 "hello" }} }}"#,
        pebble.http_port,
        pebble.tls_port,
        pebble.directory(),
    );
    let root = fs::read_to_string(pebble.server_roots()).unwrap();
    let bundle = world.bundle(&json!({"proxy.kdl": kdl, "root.crt": root}));
    let id = world.node_id();
    world.assign(&bundle, &id);
    let status = world.verdict(&id, &bundle);
    assert_eq!(status["verdict"], "accepted", "{status}");
    let is_served = || {
        let answer = https(HOST, pebble.tls_port, &pebble.issued_roots());
        answer.body.as_deref() == Ok("hello")
    };
    poll_until("the page is served", is_served);

    let mut stopped = proxyd;
    stopped.terminate();
    assert!(stopped.wait().success());
    let file = stored_certificate(&storage).unwrap();
    let whole = fs::read(&file).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();

    let mut proxyd = node(&world, &storage);
    poll_until("the page is served again", is_served);

    let file = stored_certificate(&storage).unwrap();
    fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    let upgraded = proxyd.upgrade();
    assert!(!matches!(upgraded, Upgrade::Failed(_)), "{upgraded:?}");
    poll_until("the page is served after an upgrade", is_served);
}
