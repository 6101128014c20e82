//! `proxyd health`, as used by health checks of containers.

use crate::support::{BINARY, Config};
use proxy_testkit::{Gate, Upstream, closed_port, get};
use std::fs;
use std::process::{Command, Output};

fn health(arguments: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command
        .env_remove("PROXYD_CONFIG")
        .arg("health")
        .args(arguments);
    command.output().unwrap()
}

#[test]
fn a_proxy_that_serves_is_ready_without_a_token() {
    let (upstream, folder) = (Upstream::saying("hi"), tempfile::tempdir().unwrap());
    let token = folder.path().join("token");
    fs::write(&token, "a-token-of-more-than-sixteen").unwrap();
    let admin = format!(
        "admin {{ address \"127.0.0.1:0\"; token-file \"{}\" }}",
        token.display()
    );
    let proxyd = Config::to(&upstream).top(&admin).start();
    let address = proxyd.admin_address().to_string();
    let answer = health(&["--admin", &address]);
    assert!(answer.status.success(), "{answer:?}");
    assert_eq!(answer.stdout, b"ready\n");
}

#[test]
fn a_configuration_names_the_interface_and_a_socket_without_a_proxy_is_a_failure() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("proxyd.kdl");
    let socket = folder.path().join("admin.sock");
    let text = format!(
        "listeners {{ listener \"http\" {{ address \"127.0.0.1:8080\" }} }}\n\
         admin {{ address \"off\"; unix-socket \"{}\" }}\n",
        socket.display()
    );
    fs::write(&file, text).unwrap();
    let port = closed_port().to_string();
    for (arguments, named) in [
        (["--config", file.to_str().unwrap()], "admin.sock"),
        (["--admin", port.as_str()], port.as_str()),
    ] {
        let answer = health(&arguments);
        assert_eq!(answer.status.code(), Some(1), "{answer:?}");
        let error = String::from_utf8(answer.stderr).unwrap();
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn a_proxy_that_drains_is_not_ready() {
    let gate = Gate::new();
    let upstream = Upstream::gated(&gate, "hi");
    let proxyd = Config::to(&upstream).start();
    let address = proxyd.admin_address().to_string();
    let mut client = proxyd.connect();
    client.send(get("/", &[]));
    upstream.wait_for_requests(1);
    proxyd.drain();
    let answer = health(&["--admin", &address]);
    assert_eq!(answer.status.code(), Some(1), "{answer:?}");
    let error = String::from_utf8(answer.stderr).unwrap();
    assert!(error.contains("draining"), "{error}");
    gate.open();
    assert_eq!(client.response().status, 200);
}
