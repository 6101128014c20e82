//! Certificates that the control plane obtains by ACME, proved by nodes: Pebble, `controld` and `proxyd` as they are.

use crate::refusing_authority::{DETAIL, RETRY_AFTER, RefusingAuthority};
use crate::world::{PROXYD, World, poll_until};
use control_testkit::Postgres;
use proxy_testkit::{Launch, Pebble, Policy, Proxyd, free_port, http, https};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;

/// A control plane that permits Pebble, and a node with a bundle that answers its validations.
struct Site {
    pebble: Pebble,
    world: World,
    proxyd: Proxyd,
    node: String,
}

impl Site {
    /// The node's bundle serves the hosts.
    fn start(policy: Policy, hosts: &[&str]) -> Self {
        Self::start_with(policy, hosts, &[])
    }

    /// With further arguments of `controld`.
    fn start_with(policy: Policy, hosts: &[&str], further: &[&str]) -> Self {
        let pebble = Pebble::start(policy);
        let (directory, roots) = (pebble.directory(), pebble.server_roots());
        let roots = roots.display().to_string();
        let mut arguments = vec!["--acme-directories", &directory, "--acme-ca-file", &roots];
        arguments.extend(further);
        if !further.contains(&"--heartbeat-secs") {
            arguments.extend(["--heartbeat-secs", "1"]);
        }
        let world = World::start_with(&arguments);
        let proxyd = world.node("node");
        let node = world.node_id();
        let site = Self {
            pebble,
            world,
            proxyd,
            node,
        };
        for host in hosts {
            site.pebble.resolve(host);
        }
        site.run(&json!({"proxy.kdl": plain(site.pebble.http_port, hosts)}));
        site
    }

    /// Orders the node to run these files.
    fn run(&self, files: &Value) {
        run(&self.world, &self.node, files);
    }

    fn settings(&self, hosts: &[&str]) -> Value {
        json!({
            "name": "shop", "hosts": hosts, "directory": self.pebble.directory(),
            "email": "ops@example.com", "terms_agreed": true,
        })
    }

    /// Creates a managed certificate; returns its identifier.
    fn manage(&self, hosts: &[&str]) -> String {
        let made = self
            .world
            .post("managed-certificates", &self.settings(hosts));
        let made = made.json();
        assert_eq!(made["state"], "pending", "{made}");
        made["id"].as_str().unwrap().to_owned()
    }

    /// Waits until it has a certificate; returns that.
    fn obtained(&self, id: &str) -> Value {
        let view = self.in_state(id, "valid");
        let certificate = view["certificate"].as_str().unwrap();
        self.world.get(&format!("certificates/{certificate}"))
    }

    fn in_state(&self, id: &str, state: &str) -> Value {
        in_state(&self.world, id, state)
    }

    fn renew(&self, id: &str) {
        self.world
            .post(&format!("managed-certificates/{id}/renew"), &json!({}));
    }

    /// The details of the newest entries of the audit log with this action.
    fn audited(&self, action: &str) -> Vec<Value> {
        let path = format!("/api/v1/orgs/{}/audit?action={action}", self.world.org);
        let found = self.world.operator.get(&path).json();
        let items = found["items"].as_array();
        items.unwrap_or_else(|| panic!("{found}")).clone()
    }

    /// Number of orders that were placed.
    fn orders(&self) -> usize {
        self.pebble.log().matches("POST /order-plz -> ").count()
    }
}

/// Waits until the managed certificate has a state; returns the view.
fn in_state(world: &World, id: &str, state: &str) -> Value {
    let path = format!("managed-certificates/{id}");
    let mut view = Value::Null;
    poll_until(&format!("the certificate is {state}"), || {
        view = world.get(&path);
        view["state"] == state
    });
    view
}

fn run(world: &World, node: &str, files: &Value) {
    let bundle = world.bundle(files);
    world.assign(&bundle, node);
    let status = world.verdict(node, &bundle);
    assert_eq!(status["verdict"], "accepted", "{status}");
}

/// A configuration that serves hosts without TLS.
fn plain(port: u16, hosts: &[&str]) -> String {
    format!(
        "listeners {{ listener \"http\" {{ address \"127.0.0.1:{port}\" }} }}\n{}",
        routes(hosts)
    )
}

fn routes(hosts: &[&str]) -> String {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("{host:?}")).collect();
    format!(
        "routes {{ route \"page\" {{ matches {{ host {} }}; respond 200 \"hello\" }} }}",
        hosts.join(" ")
    )
}

/// Files that serve hosts with a certificate of the project, and without TLS.
fn with_tls(site: &Site, certificate: &Value, hosts: &[&str]) -> Value {
    let (id, http) = (certificate["id"].as_str().unwrap(), site.pebble.http_port);
    let config = format!(
        "listeners {{\n\
         listener \"http\" {{ address \"127.0.0.1:{http}\" }}\n\
         listener \"https\" {{ address \"127.0.0.1:{}\"; protocol \"https\"; tls {{\n\
         certificate {{ cert-file \"certificates/{id}.pem\"; key-file \"certificates/{id}.key\" }} }} }}\n\
         }}\n{}",
        site.pebble.tls_port,
        routes(hosts)
    );
    json!({"proxy.kdl": config, format!("certificates/{id}.pem"): certificate["chain_pem"]})
}

#[test]
fn a_certificate_is_obtained_through_the_nodes_served_and_renewed_without_a_bundle() {
    let hosts = ["shop.test", "www.shop.test"];
    let policy = Policy {
        validity_secs: 25,
        ..Policy::USUAL
    };
    let site = Site::start(policy, &hosts);
    let id = site.manage(&hosts);
    let certificate = site.obtained(&id);
    assert_eq!(certificate["name"], "shop");
    site.run(&with_tls(&site, &certificate, &hosts));
    let roots = site.pebble.issued_roots();
    let shown = |host| https(host, site.pebble.tls_port, &roots);
    let mut first = String::new();
    poll_until("the certificate is served", || {
        let answer = shown("shop.test");
        first = answer.certificates;
        answer.body.as_deref() == Ok("hello")
    });
    poll_until("a renewed certificate is served", || {
        let answer = shown("www.shop.test");
        answer.body.as_deref() == Ok("hello") && answer.certificates != first
    });
    // No validation is in progress: the path is routed like any path.
    poll_until("nodes answer no challenge", || {
        let (status, _) = http(site.pebble.http_port, "/.well-known/acme-challenge/token");
        status == 404
    });
    assert!(site.audited("managed_certificate.issued").len() > 1);
    assert!(!site.audited("managed_certificate.challenged").is_empty());
    // It is renewed by its manager alone.
    let path = format!("certificates/{}", certificate["id"].as_str().unwrap());
    let path = site.world.path(&path);
    let refused = site.world.operator.send("DELETE", &path, &[], None);
    assert_eq!(refused.status, 409, "{}", refused.text);
}

#[test]
fn a_host_that_no_node_serves_is_not_ordered() {
    let site = Site::start(Policy::USUAL, &["shop.test"]);
    site.pebble.resolve("bank.test");
    let id = site.manage(&["shop.test", "bank.test"]);
    let view = site.in_state(&id, "failing");
    assert_eq!(view["error"]["kind"], "not_served", "{view}");
    let message = view["error"]["message"].as_str().unwrap();
    assert!(message.contains("bank.test"), "{message}");
    assert_eq!(site.orders(), 0, "{}", site.pebble.log());
    let path = site.world.path(&format!("managed-certificates/{id}"));
    let hosts = site.settings(&["shop.test"]);
    let changed = site.world.operator.send("PUT", &path, &[], Some(&hosts));
    assert_eq!(changed.status, 200, "{}", changed.text);
    site.obtained(&id);
}

#[test]
fn an_issued_certificate_whose_name_was_taken_is_stored_later_without_another_order() {
    let site = Site::start(Policy::USUAL, &["other.test"]);
    site.pebble.resolve("shop.test");
    let id = site.manage(&["shop.test"]);
    let view = site.in_state(&id, "failing");
    assert_eq!(view["error"]["kind"], "not_served", "{view}");
    let own = rcgen::generate_simple_self_signed(vec!["own.test".to_owned()]).unwrap();
    let (chain, key) = (own.cert.pem(), own.signing_key.serialize_pem());
    let taken = json!({"name": view["name"], "chain_pem": chain, "private_key_pem": key});
    let taken = site.world.post("certificates", &taken).json();
    site.run(&json!({"proxy.kdl": plain(site.pebble.http_port, &["shop.test"])}));
    site.renew(&id);
    let path = format!("managed-certificates/{id}");
    poll_until("the certificate has no name", || {
        site.world.get(&path)["error"]["kind"] == "name_taken"
    });
    assert_eq!(site.orders(), 1, "{}", site.pebble.log());
    let path = format!("certificates/{}", taken["id"].as_str().unwrap());
    let path = site.world.path(&path);
    let deleted = site.world.operator.send("DELETE", &path, &[], None);
    assert_eq!(deleted.status, 204, "{}", deleted.text);
    site.renew(&id);
    let certificate = site.obtained(&id);
    assert_eq!(certificate["hosts"], json!(["shop.test"]));
    assert_eq!(site.orders(), 1, "{}", site.pebble.log());
}

#[test]
fn a_refusal_shows_the_authoritys_message_and_is_retried_on_demand() {
    let mut site = Site::start(Policy::USUAL, &["shop.test"]);
    site.pebble.dns.set_addresses("shop.test", &[]);
    let id = site.manage(&["shop.test"]);
    let view = site.in_state(&id, "failing");
    let kind = view["error"]["kind"].as_str().unwrap();
    assert!(
        ["dns", "connection", "unauthorized"].contains(&kind),
        "{view}"
    );
    let message = view["error"]["message"].as_str().unwrap();
    assert!(
        message.contains("the authority refuses shop.test"),
        "{message}"
    );
    assert_eq!(
        (&view["failures"], &view["certificate"]),
        (&json!(1), &Value::Null)
    );
    assert_eq!(site.audited("managed_certificate.failed").len(), 1);
    site.pebble.resolve("shop.test");
    site.renew(&id);
    let certificate = site.obtained(&id);
    // The certificate stays while the authority is unreachable.
    site.pebble.stop();
    site.renew(&id);
    let view = site.in_state(&id, "failing");
    assert_eq!(view["error"]["kind"], "unreachable", "{view}");
    assert_eq!(view["certificate"], certificate["id"]);
}

#[test]
fn an_order_of_a_killed_control_plane_is_finished_after_its_restart() {
    let slow = ["--heartbeat-secs", "5"];
    let mut site = Site::start_with(Policy::USUAL, &["shop.test"], &slow);
    // The node confirms nothing, and is still counted as online.
    site.proxyd.signal(Signal::STOP);
    let id = site.manage(&["shop.test"]);
    poll_until("the challenges are handed out", || {
        !site.audited("managed_certificate.challenged").is_empty()
    });
    site.world.kill();
    site.proxyd.signal(Signal::CONT);
    site.world.restart();
    site.obtained(&id);
    assert_eq!(site.orders(), 1, "{}", site.pebble.log());
}

#[test]
fn a_node_that_stops_reporting_does_not_hold_up_a_validation() {
    let site = Site::start(Policy::USUAL, &["shop.test"]);
    let silent = site.world.node("silent");
    let mut second = String::new();
    poll_until("the second node has enrolled", || {
        let nodes = site.world.get("nodes");
        let found = nodes["items"].as_array().unwrap().iter();
        let mut found = found.filter(|node| node["name"] == "silent");
        found.next().is_some_and(|node| {
            node["id"].as_str().unwrap().clone_into(&mut second);
            true
        })
    });
    let files = json!({"proxy.kdl": plain(free_port(), &["shop.test"])});
    run(&site.world, &second, &files);
    silent.signal(Signal::STOP);
    let id = site.manage(&["shop.test"]);
    site.obtained(&id);
    let handed = site.audited("managed_certificate.challenged");
    assert!(!handed.is_empty());
    silent.signal(Signal::CONT);
}

#[test]
fn replicas_on_one_database_place_one_order() {
    let postgres = Postgres::start();
    let url = postgres.create_database();
    let further = ["--database", url.as_str()];
    let site = Site::start_with(Policy::USUAL, &["shop.test"], &further);
    let replicas = [site.world.replica(), site.world.replica()];
    let id = site.manage(&["shop.test"]);
    site.obtained(&id);
    assert_eq!(site.orders(), 1, "{}", site.pebble.log());
    drop(replicas);
}

#[test]
fn a_name_that_moved_to_another_tenant_is_lost_by_the_former_and_issued_to_the_next() {
    let site = Site::start(Policy::USUAL, &["shop.test"]);
    let id = site.manage(&["shop.test"]);
    site.obtained(&id);
    // The former tenant still has a node and the route; the name leads to the next tenant.
    let away = json!({"proxy.kdl": plain(free_port(), &["shop.test"])});
    site.run(&away);
    let (project, proxyd, node) = other_project(&site);
    let path = |rest: &str| format!("/api/v1/projects/{project}/{rest}");
    let operator = &site.world.operator;
    let files = json!({"proxy.kdl": plain(site.pebble.http_port, &["shop.test"])});
    let bundle = operator.post(&path("bundles"), &json!({"name": "b", "files": files}));
    let bundle = bundle.json()["id"].as_str().unwrap().to_owned();
    let assigned = operator.post(
        &path(&format!("bundles/{bundle}/assign")),
        &json!({"nodes": [node]}),
    );
    assert!(assigned.status < 300, "{}", assigned.text);
    poll_until("the next tenant serves the name", || {
        let view = operator.get(&path(&format!("nodes/{node}"))).json();
        view["status"]["active"] == json!(bundle)
    });
    site.renew(&id);
    let view = site.in_state(&id, "failing");
    assert_eq!(view["error"]["kind"], "unauthorized", "{view}");
    let made = operator.post(
        &path("managed-certificates"),
        &site.settings(&["shop.test"]),
    );
    let made = made.json()["id"].as_str().unwrap().to_owned();
    poll_until("the next tenant has a certificate", || {
        let view = operator.get(&path(&format!("managed-certificates/{made}")));
        view.json()["state"] == "valid"
    });
    drop(proxyd);
}

/// Another project with a node.
fn other_project(site: &Site) -> (String, Proxyd, String) {
    let world = &site.world;
    let made = world.operator.post(
        &format!("/api/v1/orgs/{}/projects", world.org),
        &json!({"name": "next"}),
    );
    let project = made.json()["id"].as_str().unwrap().to_owned();
    let path = |rest: &str| format!("/api/v1/projects/{project}/{rest}");
    let token = json!({"name": "nodes", "max_uses": 1});
    let token = world.operator.post(&path("enrolment-tokens"), &token);
    let file = world.folder.path().join("next.token");
    fs::write(&file, token.json()["secret"].as_str().unwrap()).unwrap();
    let own = world.own("next", &world.url);
    let own = own.replace(&world.project, &project);
    let own = own.replace(
        &world.token.display().to_string(),
        &file.display().to_string(),
    );
    let proxyd = Launch::new(PROXYD, &own).start();
    let mut node = String::new();
    poll_until("the node of the next tenant has enrolled", || {
        let nodes = world.operator.get(&path("nodes")).json();
        let found = nodes["items"][0]["id"].as_str();
        found.unwrap_or_default().clone_into(&mut node);
        !node.is_empty()
    });
    (project, proxyd, node)
}

#[test]
fn the_retry_after_of_the_authority_is_obeyed() {
    let folder = tempfile::tempdir().unwrap();
    let authority = RefusingAuthority::start(folder.path());
    let (directory, roots) = (authority.directory(), authority.roots());
    let world = World::start_with(&[
        "--heartbeat-secs",
        "1",
        "--acme-directories",
        &directory,
        "--acme-ca-file",
        &roots,
    ]);
    let _proxyd = world.node("node");
    let node = world.node_id();
    let files = json!({"proxy.kdl": plain(free_port(), &["shop.test"])});
    run(&world, &node, &files);
    let made = world.post(
        "managed-certificates",
        &json!({
            "name": "shop", "hosts": ["shop.test"], "directory": directory,
            "email": "ops@example.com", "terms_agreed": true,
        }),
    );
    let made = made.json();
    let view = in_state(&world, made["id"].as_str().unwrap(), "failing");
    assert_eq!(view["error"]["kind"], "rateLimited", "{view}");
    let message = view["error"]["message"].as_str().unwrap();
    assert!(message.contains(DETAIL), "{message}");
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let wait = time(&view["next_at"]).duration_since(time(&view["error"]["at"]));
    let asked = i64::try_from(RETRY_AFTER).unwrap();
    assert!(
        (asked..=asked * 9 / 8 + 1).contains(&wait.as_secs()),
        "{view}"
    );
}
