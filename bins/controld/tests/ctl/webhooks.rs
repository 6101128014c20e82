//! `controld ctl webhook`: the commands of docs/operate/webhooks.md, and the two addresses on one command line.

use super::{CONTROLD, World, done};
use control_testkit::Receiver;
use serde_json::json;
use std::fs;
use std::path::Path;
use std::process::Command;

const PAGE: &str = include_str!("../../../../docs/operate/webhooks.md");

#[test]
fn every_command_of_the_page_works() {
    let world = World::new();
    let made = world.ctl(&["project", "create", "--name", "shop"]);
    assert_eq!(made.code, 0, "{}", made.error);
    let blocks = PAGE.split("```sh\n").skip(1);
    let script: String = blocks
        .map(|rest| rest.split("```").next().unwrap())
        .collect();
    assert!(script.contains("webhook create"), "{script}");
    let mut shell = Command::new("/bin/sh");
    shell
        .args(["-exc", &script])
        .env_clear()
        .env("PATH", Path::new(CONTROLD).parent().unwrap())
        .env("XDG_CONFIG_HOME", world.folder.path())
        .env("CONTROLD_URL", world.program.base_url())
        .env("CONTROLD_API_KEY", &world.key);
    let ran = done(shell.output().unwrap());
    assert_eq!(ran.code, 0, "{}", ran.error);
    assert!(ran.out.contains("whsec_"), "{}", ran.out);
    let made = world.json(&["webhook", "get", "on-call", "--project", "shop"]);
    assert_eq!(made["url"], "https://hooks.example.com/deploys");
}

#[test]
fn the_key_is_never_sent_to_the_address_of_a_webhook() {
    let world = World::new();
    let receiver = Receiver::answering("200 OK");
    let url = receiver.url();
    let fields = [
        "--project",
        "edge",
        "--name",
        "a",
        "--events",
        "drift.opened",
    ];
    let create = ["webhook", "create"];
    for arguments in [
        [&create[..], &fields, &["--url", &url]].concat(),
        [&["--url", &url][..], &create, &fields].concat(),
        ["bundle", "explain-request", "none", "--url", &url].to_vec(),
    ] {
        let refused = world.ctl(&arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.error);
        assert!(
            refused.error.contains("`--request-url`"),
            "{}",
            refused.error
        );
    }
    assert!(receiver.received().is_empty(), "{:?}", receiver.received());
    let server = ["--url", world.program.base_url()];
    let own = ["--request-url", "https://hooks.example.com/"];
    let made = world.ctl(&[&server[..], &create, &fields, &own].concat());
    assert_eq!(made.code, 0, "{}", made.error);
}

#[test]
fn secrets_created_by_a_file_are_shown() {
    let world = World::new();
    let file = world.folder.path().join("all.json");
    let wanted = json!({
        "webhooks": [{"name": "a", "url": "https://hooks.example.com/", "events": ["drift.opened"]}],
        "enrolment-tokens": [{"name": "b"}],
    });
    fs::write(&file, wanted.to_string()).unwrap();
    let apply = ["apply", "-f", file.to_str().unwrap(), "--project", "edge"];
    let made = world.ctl(&apply);
    assert_eq!(made.code, 0, "{}", made.error);
    for start in [
        "webhook/a created; secret, shown this once: whsec_",
        "enrolment-token/b created; secret, shown this once: ",
    ] {
        assert!(
            made.out.lines().any(|line| line.starts_with(start)),
            "{}",
            made.out
        );
    }
    // The update sends the version of the changed webhook.
    let wanted = wanted.to_string().replace("drift.opened", "node.silent");
    fs::write(&file, wanted).unwrap();
    let changed = world.ctl(&apply);
    assert_eq!(changed.code, 0, "{}", changed.error);
    assert!(
        changed.out.contains("webhook/a updated: events"),
        "{}",
        changed.out
    );
}

#[test]
fn an_empty_flag_ends_all_freezes() {
    let world = World::new();
    let set = ["project", "set-policy", "edge", "--freeze"];
    let freezes = |text: &str| {
        let changed = world.json(&[&set[..], &[text]].concat());
        changed["policy"]["freeze"].clone()
    };
    assert_eq!(
        freezes("Fri 16:00-Mon 08:00"),
        json!(["Fri 16:00-Mon 08:00"])
    );
    assert_eq!(freezes(""), json!([]));
}
