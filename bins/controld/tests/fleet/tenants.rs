//! Response times for nine organizations, without and with the load of a hostile tenth.
//!
//! `CONTROLD_TENANTS="60"`, as set by `cargo xtask chaos --tenants`, is the duration of each part
//! in seconds. Without it, both parts are short and only failures count, because other tests run at
//! the same time.
#![expect(
    clippy::disallowed_types,
    reason = "tasks of a test share their counts"
)]

use crate::CONTROLD;
use crate::connection::{Caller, Credential, bearer, connect, head, node_key, pace};
use crate::nodes::{InsertedNode, insert};
use control_domain::Tenant;
use control_simulator::quantile;
use control_testkit::Program;
use control_wire::{OrgId, ProjectId};
use proxy_load::clock::Stopwatch;
use serde_json::{Value, from_slice, json};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;
use tokio::time::timeout;

const TENANTS: u8 = 10;
/// Pause between requests of a tenant: its key may send five a second.
const PACE: Duration = Duration::from_millis(300);
/// Number of API keys of the hostile organization, each with its own rate limit.
const HOSTILE_KEYS: usize = 16;
const HOSTILE_NODES: usize = 60;
/// Pause after a refused attack, so that most of the load is on the program, not on the attacker.
const REFUSED_PAUSE: Duration = Duration::from_millis(50);
const SILENT_CONNECTIONS: usize = 600;
/// Sent once per second, which is above the minimum upload rate of 16 KiB/s.
static SLOW_PIECE: [u8; 24 * 1024] = [b' '; 24 * 1024];
const MAX_CALL: Duration = Duration::from_secs(2);
const MAX_MEMORY_BYTES: u64 = 300 * 1024 * 1024;

/// An organization with a project and an API key.
#[derive(Clone, Debug)]
struct Organization {
    address: Ipv4Addr,
    credential: Credential,
    org: String,
    project: String,
    nodes: Vec<InsertedNode>,
}

/// Requests of the nine organizations: their durations, and the failures.
#[derive(Debug, Default)]
struct Calls {
    latencies: Vec<Duration>,
    failures: BTreeMap<String, usize>,
}

/// Number of responses to the hostile organization, by attack and status.
type Answers = Arc<Mutex<BTreeMap<(&'static str, u16), usize>>>;

fn run(words: &[&str]) -> String {
    let done = Command::new(CONTROLD).args(words).output().unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}

/// Creates an organization on the command line, because the interface permits only one.
fn organization(data: &str, number: u8) -> String {
    let (email, name) = (format!("a@{number}.example"), format!("tenant {number}"));
    let create = ["admin", "create", "--data-dir", data, "--email", &email];
    let named = ["--org-name", &name, "--api-key-name", "test"];
    let printed = run(&[&create[..], &named].concat());
    let key = printed
        .lines()
        .find_map(|line| line.strip_prefix("api key "));
    key.unwrap().to_owned()
}

async fn json_of(caller: &mut Caller, request: (&str, &str), by: &str, body: &Value) -> Value {
    let bytes = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let answered = caller.call(request, by, &bytes).await.unwrap();
    let text = String::from_utf8_lossy(&answered.body);
    assert!(answered.status < 300, "{request:?}: {text}");
    from_slice(&answered.body).unwrap()
}

async fn populate(to: SocketAddr, number: u8, key: &str) -> Organization {
    let (address, credential) = (Ipv4Addr::new(127, 0, 1, number), bearer(key));
    let mut caller = Caller::new(address, to);
    let orgs = json_of(&mut caller, ("GET", "/orgs"), &credential, &Value::Null).await;
    let org = orgs["items"][0]["id"].as_str().unwrap().to_owned();
    let projects = format!("/orgs/{org}/projects");
    let new = json!({"name": "edge"});
    let project = json_of(&mut caller, ("POST", &projects), &credential, &new).await;
    Organization {
        address,
        credential,
        org,
        project: project["id"].as_str().unwrap().to_owned(),
        nodes: Vec::new(),
    }
}

fn tenant(organization: &Organization) -> Tenant {
    let Organization { org, project, .. } = organization;
    Tenant::project(
        OrgId(org.parse().unwrap()),
        ProjectId(project.parse().unwrap()),
    )
}

/// Sends the typical requests of an organization, with pauses.
async fn work(own: Organization, to: SocketAddr, time: Duration) -> Calls {
    let Organization {
        address,
        credential,
        org,
        project,
        nodes,
    } = own;
    let node = &nodes[0];
    let project = format!("/projects/{project}");
    let heartbeat = json!({"health": {"cpu_percent": 1.0}}).to_string();
    let text = "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }";
    let bundle = json!({"name": "edge", "files": {"proxy.kdl": text}}).to_string();
    let by_node = node_key(&node.key);
    let requests = [
        ("GET", format!("{project}/nodes"), &credential, ""),
        ("GET", project.clone(), &credential, ""),
        (
            "POST",
            format!("/nodes/{}/heartbeat", node.id),
            &by_node,
            heartbeat.as_str(),
        ),
        (
            "POST",
            format!("{project}/bundles"),
            &credential,
            bundle.as_str(),
        ),
        (
            "GET",
            format!("{project}/bundles?limit=20"),
            &credential,
            "",
        ),
        (
            "GET",
            format!("{project}/nodes/{}", node.id),
            &credential,
            "",
        ),
        (
            "GET",
            format!("/orgs/{org}/audit?limit=20"),
            &credential,
            "",
        ),
    ];
    let (clock, mut caller) = (Stopwatch::start(), Caller::new(address, to));
    let mut calls = Calls::default();
    for (method, path, by, body) in requests.iter().cycle() {
        if time < clock.elapsed() {
            break;
        }
        let call = Stopwatch::start();
        let answered = caller.call((method, path), by, body.as_bytes()).await;
        calls.latencies.push(call.elapsed());
        let fault = match answered {
            Ok(answered) if answered.status < 300 => None,
            Ok(answered) => Some(format!("{method} {path}: {}", answered.status)),
            Err(error) => Some(format!("{method} {path}: {error}")),
        };
        if let Some(fault) = fault {
            *calls.failures.entry(fault).or_default() += 1;
        }
        pace(PACE).await;
    }
    calls
}

async fn work_of_all(organizations: &[Organization], to: SocketAddr, time: Duration) -> Calls {
    let mut tasks = JoinSet::new();
    for organization in organizations {
        tasks.spawn(work(organization.clone(), to, time));
    }
    let mut all = Calls::default();
    for calls in tasks.join_all().await {
        let Calls {
            latencies,
            failures,
        } = calls;
        all.latencies.extend(latencies);
        all.failures.extend(failures);
    }
    all
}

/// Generates a configuration with one route per match.
fn configuration(routes: usize, matches: impl Fn(usize) -> String) -> String {
    let mut text = "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }\n\
                    upstreams { upstream \"u\" { target \"10.0.0.1:80\" } }\nroutes {\n"
        .to_owned();
    for number in 0..routes {
        let matches = matches(number);
        writeln!(
            text,
            "route \"r{number}\" {{ matches {{ {matches} }}; upstream \"u\" }}"
        )
        .unwrap();
    }
    text.push_str("}\n");
    text
}

fn bundle(text: &str) -> Vec<u8> {
    let files = json!({"name": "hostile", "files": {"proxy.kdl": text}});
    files.to_string().into_bytes()
}

fn tests(count: usize) -> String {
    let test = |number| {
        format!("test \"t{number}\" {{ request \"GET\" \"/\"; expect {{ status 404 }} }}\n")
    };
    let tests: String = (0..count).map(test).collect();
    format!("tests {{\n{tests}}}\n")
}

/// Returns a heartbeat near the limit of 512 KiB. Two variants alternate, so that each is a change.
fn fat_heartbeat(variant: usize) -> Vec<u8> {
    let (name, latency) = ("n".repeat(200), [variant; 12]);
    let routes = (0..500).map(|number| {
        let reasons: BTreeMap<String, usize> = (0..8)
            .map(|reason| (format!("reason_{reason}"), variant))
            .collect();
        let route =
            json!({"requests": variant, "errors": 0, "latency": latency, "reasons": reasons});
        (format!("{name}{number}"), route)
    });
    let routes: serde_json::Map<String, Value> = routes.collect();
    let body = json!({"health": {"cpu_percent": 1.0}, "traffic": {"routes": routes}});
    body.to_string().into_bytes()
}

struct Attacker {
    own: Organization,
    to: SocketAddr,
    keys: Vec<Credential>,
    answers: Answers,
    tasks: JoinSet<()>,
}

impl Attacker {
    async fn new(own: Organization, to: SocketAddr) -> Self {
        let mut caller = Caller::new(own.address, to);
        let mut keys = Vec::new();
        for number in 0..HOSTILE_KEYS {
            let new = json!({"name": format!("key {number}")});
            let made = json_of(&mut caller, ("POST", "/api-keys"), &own.credential, &new).await;
            keys.push(bearer(made["secret"].as_str().unwrap()));
        }
        Self {
            own,
            to,
            keys,
            answers: Answers::default(),
            tasks: JoinSet::new(),
        }
    }

    /// Sends a request repeatedly until the attack ends, with the bodies and keys in turn.
    fn repeat(
        &mut self,
        attack: &'static str,
        request: (&'static str, String),
        by: Vec<Credential>,
        bodies: Vec<Vec<u8>>,
    ) {
        let (mut caller, answers) = (
            Caller::new(self.own.address, self.to),
            Arc::clone(&self.answers),
        );
        self.tasks.spawn(async move {
            let (method, path) = request;
            let turns = by.iter().cycle().zip(bodies.iter().cycle());
            for (credential, body) in turns {
                let answered = caller.call((method, &path), credential, body).await;
                let status = answered.map_or(0, |answered| answered.status);
                *answers.lock().unwrap().entry((attack, status)).or_default() += 1;
                if !(200..300).contains(&status) {
                    pace(REFUSED_PAUSE).await;
                }
            }
        });
    }

    /// Uploads bodies in small pieces.
    fn upload_slowly(&mut self, path: &str) {
        let (from, to) = (self.own.address, self.to);
        let head = head(
            "POST",
            path,
            &self.keys[self.tasks.len() % HOSTILE_KEYS],
            30_000_000,
        );
        self.tasks.spawn(async move {
            loop {
                let Ok(mut stream) = connect(from, to).await else {
                    continue;
                };
                let mut sent = stream.write_all(head.as_bytes()).await;
                while sent.is_ok() {
                    pace(Duration::from_secs(1)).await;
                    sent = stream.write_all(&SLOW_PIECE).await;
                }
            }
        });
    }

    /// Opens connections that send nothing, and replaces closed ones.
    fn be_silent(&mut self) {
        let (from, to) = (self.own.address, self.to);
        self.tasks.spawn(async move {
            let mut held = Vec::new();
            loop {
                held.retain(|stream: &tokio::net::TcpStream| {
                    let mut byte = [0];
                    let read = stream.try_read(&mut byte);
                    read.is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock)
                });
                while held.len() < SILENT_CONNECTIONS
                    && let Ok(stream) = connect(from, to).await
                {
                    held.push(stream);
                }
                pace(Duration::from_millis(500)).await;
            }
        });
    }

    /// Starts all attacks.
    async fn begin(&mut self) {
        let project = format!("/projects/{}", self.own.project);
        let bundles = format!("{project}/bundles");
        let keys = self.keys.clone();
        let large = configuration(3_000, |number| format!("path \"/r{number}\""));
        let mut ids = Vec::new();
        let mut caller = Caller::new(self.own.address, self.to);
        for text in [large.clone(), large.replace("/r", "/s")] {
            let body = bundle(&text);
            let made = caller
                .call(("POST", &bundles), &keys[0], &body)
                .await
                .unwrap();
            let made: Value = from_slice(&made.body).unwrap();
            ids.push(made["id"].as_str().unwrap().to_owned());
        }
        for _ in 0..8 {
            self.upload_slowly(&bundles);
        }
        let regexes = |number| format!("path-regex \"^/r{number}/[a-z]{{3000}}$\"");
        let regexes = bundle(&configuration(6_000, regexes));
        let tested = bundle(&format!("{large}{}", tests(1_000)));
        let comment = bundle(&format!("// {}\n", "x".repeat(8 * 1024 * 1024)));
        let diff = format!("{bundles}/{}/diff?before={}", ids[1], ids[0]);
        let list = format!("{project}/nodes?limit=200");
        for _ in 0..2 {
            let post = || ("POST", bundles.clone());
            self.repeat("uploads", post(), keys.clone(), vec![comment.clone()]);
            self.repeat("regexes", post(), keys.clone(), vec![regexes.clone()]);
            self.repeat("tests", post(), keys.clone(), vec![tested.clone()]);
            self.repeat(
                "diffs",
                ("GET", diff.clone()),
                keys.clone(),
                vec![Vec::new()],
            );
            self.repeat(
                "lists",
                ("GET", list.clone()),
                keys.clone(),
                vec![Vec::new()],
            );
        }
        let fat = vec![fat_heartbeat(1), fat_heartbeat(2)];
        for node in self.own.nodes.clone() {
            let path = format!("/nodes/{}/heartbeat", node.id);
            self.repeat(
                "heartbeats",
                ("POST", path),
                vec![node_key(&node.key)],
                fat.clone(),
            );
        }
        self.be_silent();
    }
}

/// Returns the peak memory of the program.
fn peak_memory_bytes(program: &Program) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", program.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = peak.unwrap().trim().trim_end_matches(" kB");
    kibibytes.parse::<u64>().unwrap() * 1024
}

fn show(what: &str, calls: &mut Calls) -> Duration {
    let mut at = |permille| quantile(&mut calls.latencies, permille).unwrap();
    let (p50, p99, most) = (at(500), at(990), at(1_000));
    let count = calls.latencies.len();
    println!("{what}: {count} calls, p50 {p50:?}, p99 {p99:?}, most {most:?}");
    for (failure, times) in &calls.failures {
        println!("  {failure}, {times} times");
    }
    most
}

fn populated(data: &Path, program: &Program, keys: &[String]) -> Vec<Organization> {
    let to = address(program);
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    let mut organizations: Vec<Organization> = runtime.block_on(async {
        let mut populated = Vec::new();
        for (number, key) in (0..).zip(keys) {
            populated.push(populate(to, number + 1, key).await);
        }
        populated
    });
    let url = format!("sqlite://{}", data.join("control.db").display());
    for (number, organization) in organizations.iter_mut().enumerate() {
        let count = if number == 0 { HOSTILE_NODES } else { 1 };
        organization.nodes = insert(&url, tenant(organization), count);
    }
    organizations
}

fn address(program: &Program) -> SocketAddr {
    let authority = program.base_url().strip_prefix("http://").unwrap();
    authority.parse().unwrap()
}

#[test]
fn a_hostile_organization_delays_no_other() {
    let full = std::env::var("CONTROLD_TENANTS").ok();
    let secs = full.as_ref().map_or(3, |text| text.parse().unwrap());
    let time = Duration::from_secs(secs);
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().display().to_string();
    let keys: Vec<String> = (0..TENANTS)
        .map(|number| organization(&data, number))
        .collect();
    let limits = ["--max-connections", "1024"];
    let program = Program::start(CONTROLD, &[&["--data-dir", &data][..], &limits].concat());
    let mut organizations = populated(folder.path(), &program, &keys);
    let hostile = organizations.remove(0);
    let to = address(&program);
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    let runtime = runtime.worker_threads(2).enable_all().build().unwrap();
    let (mut alone, mut beside, answers) = runtime.block_on(async {
        let alone = work_of_all(&organizations, to, time).await;
        let mut attacker = Attacker::new(hostile, to).await;
        attacker.begin().await;
        let beside = timeout(
            time * 4 + Duration::from_mins(2),
            work_of_all(&organizations, to, time),
        );
        let beside = beside.await.unwrap();
        attacker.tasks.shutdown().await;
        (alone, beside, attacker.answers)
    });
    show("without the hostile organization", &mut alone);
    let most = show("beside it", &mut beside);
    for ((attack, status), count) in answers.lock().unwrap().iter() {
        println!("  {attack}: {count} times {status}");
    }
    let memory = peak_memory_bytes(&program);
    println!("  peak memory: {} MiB", memory / (1024 * 1024));
    if full.is_none() {
        // On a busy machine, an upload may never be admitted.
        beside
            .failures
            .retain(|failure, _| !failure.ends_with(": 503"));
    }
    let none = BTreeMap::new();
    assert_eq!((&alone.failures, &beside.failures), (&none, &none));
    assert_eq!(program.client().get("/ready").status, 200);
    if full.is_some() {
        assert!(
            most < MAX_CALL && memory < MAX_MEMORY_BYTES,
            "{most:?}, {memory} bytes"
        );
    }
}
