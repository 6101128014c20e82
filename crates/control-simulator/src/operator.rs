//! The operator of a simulation: calls of the API, each with its time.
#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a simulation may stop, and says why"
)]

use control_testkit::{Client, Program};
use proxy_load::clock::{Stopwatch, pause};
use serde_json::{Value, json};
use std::cell::RefCell;
use std::time::Duration;

/// An API key may send five requests a second.
const REQUEST_INTERVAL: Duration = Duration::from_millis(210);
/// Time limit for all nodes to be online.
const ENROLMENT_TIMEOUT: Duration = Duration::from_mins(10);
const PAGE_NODES: usize = 200;

/// The holder of an API key of a new organization with one project.
#[derive(Debug)]
pub struct Operator {
    base_url: String,
    client: Client,
    key: String,
    org: String,
    project: String,
    process: i32,
    latencies: RefCell<Vec<Duration>>,
}

impl Operator {
    /// Sets a new control plane up.
    ///
    /// # Panics
    ///
    /// If it was set up already.
    pub fn set_up(program: &mut Program) -> Self {
        let link = program.setup_token();
        let body = json!({
            "org_name": "acme", "project_name": "edge", "api_key_name": "simulator",
            "email": "ann@example.com", "user_name": "Ann", "password": "correct horse",
        });
        let made = program.client().with_bearer(&link);
        let made = made.post("/api/v1/setup", &body).json();
        let key = made["api_key"]["secret"]
            .as_str()
            .expect("the answer has a secret");
        Self {
            base_url: program.base_url().to_owned(),
            client: program.client().with_bearer(key),
            key: key.to_owned(),
            org: text(&made["org"], "id"),
            project: text(&made["project"], "id"),
            process: i32::try_from(program.id()).expect("the process id is valid"),
            latencies: RefCell::default(),
        }
    }

    /// `http://127.0.0.1:PORT`
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Its API key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The identifier of the organization.
    pub fn org(&self) -> &str {
        &self.org
    }

    /// The identifier of the project.
    pub fn project(&self) -> &str {
        &self.project
    }

    /// The process id of the control plane.
    pub fn process(&self) -> i32 {
        self.process
    }

    /// Duration of each call, from its connection to the end of its answer.
    pub fn latencies(&self) -> Vec<Duration> {
        self.latencies.borrow().clone()
    }

    /// The page of metrics.
    ///
    /// # Panics
    ///
    /// If the control plane does not answer.
    pub fn metrics(&self) -> String {
        self.client.get("/metrics").text
    }

    /// Makes a bundle that differs from all before by its identifier alone, which is returned.
    ///
    /// # Panics
    ///
    /// If the control plane refuses it.
    pub fn bundle(&self, name: &str) -> String {
        let file = "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }";
        let file = format!("{file}\n// {name}\n");
        let body = json!({"name": name, "files": {"proxy.kdl": file}});
        text(&self.post("bundles", &body), "id")
    }

    pub(crate) fn enrolment_token(&self, uses: usize, group: usize) -> String {
        let labels = json!({"group": group.to_string()});
        let name = format!("fleet {group}");
        let body = json!({"name": name, "max_uses": uses, "labels": labels});
        text(&self.post("enrolment-tokens", &body), "secret")
    }

    pub(crate) fn until_online(&self, nodes: usize) {
        let clock = Stopwatch::start();
        loop {
            let stats = self.get("nodes/stats");
            if stats["online"] == json!(nodes) {
                return;
            }
            assert!(
                clock.elapsed() < ENROLMENT_TIMEOUT,
                "{nodes} nodes: {stats}"
            );
        }
    }

    /// The identifiers and names of all nodes.
    pub(crate) fn nodes(&self) -> Vec<(String, String)> {
        let mut nodes = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("nodes?limit={PAGE_NODES}{cursor}"));
            let items = page["items"].as_array().expect("a list");
            nodes.extend(
                items
                    .iter()
                    .map(|node| (text(node, "id"), text(node, "name"))),
            );
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return nodes,
            }
        }
    }

    pub(crate) fn get(&self, rest: &str) -> Value {
        self.call("GET", rest, None)
    }

    pub(crate) fn post(&self, rest: &str, body: &Value) -> Value {
        self.call("POST", rest, Some(body))
    }

    fn call(&self, method: &str, rest: &str, body: Option<&Value>) -> Value {
        pause(REQUEST_INTERVAL);
        let path = format!("/api/v1/projects/{}/{rest}", self.project);
        let clock = Stopwatch::start();
        let answer = self.client.send(method, &path, &[], body);
        self.latencies.borrow_mut().push(clock.elapsed());
        assert!(answer.status < 300, "{method} {rest}: {}", answer.text);
        answer.json()
    }
}

fn text(value: &Value, field: &str) -> String {
    let found = value[field].as_str();
    found
        .unwrap_or_else(|| panic!("no {field} in {value}"))
        .to_owned()
}
