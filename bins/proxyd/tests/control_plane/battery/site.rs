//! A control plane, six nodes, their upstreams, and the rollout of one bundle after the other.

use super::clients::{Clients, HOST, Ports, WrongResponse};
use super::scene::{Case, Condition, Scene};
use super::table::Row;
use crate::fleet::ARGUMENTS;
use crate::world::{LOOK_INTERVAL, PROXYD, World, poll_until};
use agent_protocol::Wants;
use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{AgentReply, FakeAgent, Launch, Proxyd, Upstream, closed_port};
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

const NODES: usize = 6;
/// Nodes of the first batch, and of each of the two after it.
const BATCH: usize = 2;
const TIMEOUT: Duration = Duration::from_secs(100);

/// The guards that are at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Guards {
    /// Tests of the bundle, the policy on risks, live tests, the gate.
    All,
    /// Live tests and the gate alone: a change that no test and no diff sees.
    OfNodes,
}

pub(super) struct Site {
    scene: &'static Scene,
    guards: Guards,
    clients: Clients,
    nodes: Vec<Proxyd>,
    ports: Arc<Vec<Ports>>,
    upstreams: Vec<(&'static str, Upstream)>,
    certificates: Certificates,
    agent: FakeAgent,
    _sockets: TempDir,
    taken: TcpListener,
    base: String,
    number: AtomicUsize,
    world: World,
}

/// Certificates of the control plane: identifier and chain.
struct Certificates {
    good: (String, String),
    renewed: (String, String),
    other: (String, String),
    expiring: (String, String),
}

impl Certificates {
    fn start(world: &World, roots: &mut RootCertStore) -> Self {
        let mut make = |name: &str, host: &str, is_expiring: bool| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![host.to_owned()]).unwrap();
            params.not_before = date_time_ymd(2020, 1, 1);
            params.not_after = date_time_ymd(2090, 1, 1);
            if is_expiring {
                params.not_after = soon().into();
            }
            let made = params.self_signed(&key).unwrap();
            roots.add(made.der().clone()).unwrap();
            let body = json!({
                "name": name, "chain_pem": made.pem(), "private_key_pem": key.serialize_pem(),
            });
            let found = world.post("certificates", &body).json();
            let id = found["id"].as_str().unwrap_or_else(|| panic!("{found}"));
            (id.to_owned(), made.pem())
        };
        Self {
            good: make("good", HOST, false),
            renewed: make("renewed", HOST, false),
            other: make("other", "other.example.com", false),
            expiring: make("expiring", HOST, true),
        }
    }

    fn all(&self) -> [(&'static str, &(String, String)); 4] {
        [
            ("good", &self.good),
            ("renewed", &self.renewed),
            ("other", &self.other),
            ("expiring", &self.expiring),
        ]
    }
}

impl Site {
    pub(super) fn start(scene: &'static Scene, guards: Guards) -> Self {
        let world = World::start_with(&ARGUMENTS);
        let mut roots = RootCertStore::empty();
        let certificates = Certificates::start(&world, &mut roots);
        let tls = ClientConfig::builder_with_provider(Arc::new(
            tokio_rustls::rustls::crypto::aws_lc_rs::default_provider(),
        ));
        let tls = tls.with_safe_default_protocol_versions().unwrap();
        let tls = Arc::new(tls.with_root_certificates(roots).with_no_client_auth());
        let sockets = tempfile::tempdir().unwrap();
        let socket = sockets.path().join("guard.sock");
        let agent = FakeAgent::start_at(&socket, Wants::default(), |_| AgentReply::block());
        let nodes = (1..=NODES).map(|number| {
            let name = format!("edge-{number}");
            let allow = format!(
                "upstreams-on-loopback #true; agents \"guard={}\"",
                socket.display()
            );
            let own = world.own(&name, &world.url);
            let own = own.replace("upstreams-on-loopback #true", &allow);
            let node = Launch::new(PROXYD, &own).start();
            poll_until("the node has enrolled", || {
                let nodes = world.get("nodes");
                let mut nodes = nodes["items"].as_array().into_iter().flatten();
                nodes.any(|node| node["name"] == name)
            });
            node
        });
        let nodes: Vec<Proxyd> = nodes.collect();
        let ports = (0..NODES).map(|_| Ports {
            plain: AtomicU16::new(0),
            secure: AtomicU16::new(0),
        });
        let ports: Arc<Vec<Ports>> = Arc::new(ports.collect());
        let mut site = Self {
            scene,
            guards,
            clients: Clients::start(&[], &Arc::default(), &tls),
            nodes,
            ports,
            upstreams: (scene.upstreams)(),
            certificates,
            agent,
            _sockets: sockets,
            taken: TcpListener::bind("127.0.0.1:0").unwrap(),
            base: String::new(),
            number: AtomicUsize::new(0),
            world,
        };
        site.base = site.begin();
        site.find_ports();
        site.clients = Clients::start(scene.asks, &site.ports, &tls);
        site
    }

    /// Assigns the bundle that all cases begin with.
    fn begin(&self) -> String {
        let base = self.world.bundle(&self.files(&self.config()));
        let nodes = self.world.get("nodes");
        let nodes = nodes["items"].as_array().unwrap().iter();
        let ids: Vec<&str> = nodes.map(|node| node["id"].as_str().unwrap()).collect();
        self.world
            .post(&format!("bundles/{base}/assign"), &json!({"nodes": ids}));
        self.until_all_run(&base);
        base
    }

    fn until_all_run(&self, bundle: &str) {
        let since = Stopwatch::start();
        loop {
            let nodes = self.world.get("nodes");
            let mut found = nodes["items"].as_array().into_iter().flatten();
            if found.all(|node| node["status"]["active"] == bundle) {
                return;
            }
            assert!(since.elapsed() < TIMEOUT, "{nodes}");
            pause(LOOK_INTERVAL);
        }
    }

    /// Listening addresses of the nodes, from their logs: the newest address with TLS is the second one.
    fn find_ports(&self) {
        for (node, ports) in self.nodes.iter().zip(self.ports.iter()) {
            let log = node.stderr();
            let records = log.records();
            let logged = records
                .iter()
                .filter(|record| record.text("message") == "listening");
            let found: Vec<SocketAddr> = logged
                .filter_map(|record| record.text("address").parse().ok())
                .collect();
            ports.plain.store(found[0].port(), Ordering::Relaxed);
            let secure = found[1..].last().unwrap();
            ports.secure.store(secure.port(), Ordering::Relaxed);
        }
    }

    fn files(&self, config: &str) -> Value {
        let mut files = json!({"proxy.kdl": config});
        for (_, (id, chain)) in self.certificates.all() {
            if config.contains(id.as_str()) {
                files[format!("certificates/{id}.pem")] = json!(chain);
            }
        }
        files
    }

    /// The configuration before a case, with its names replaced.
    fn config(&self) -> String {
        let Scene {
            config,
            pure_tests,
            live_tests,
            ..
        } = self.scene;
        let tests = match self.guards {
            Guards::All => format!("{pure_tests}{live_tests}"),
            Guards::OfNodes => (*live_tests).to_owned(),
        };
        self.fill(&format!("{config}tests {{\n{tests}}}\n"))
    }

    /// Replaces names of upstreams, certificates and addresses by this run's.
    fn fill(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for (name, upstream) in &self.upstreams {
            let address = upstream.address().to_string();
            text = text.replace(&format!("@{name}@"), &address);
            let by_name = format!("localhost:{}", upstream.address().port());
            text = text.replace(&format!("@{name}-by-name@"), &by_name);
        }
        for (name, (id, _)) in self.certificates.all() {
            text = text.replace(&format!("@cert-{name}@"), id);
        }
        text = text.replace("@closed@", &closed_port().to_string());
        let taken = self.taken.local_addr().unwrap().to_string();
        text.replace("@taken@", &taken)
    }

    /// Rolls the bundle of the case out, waits for its end, and resets the nodes.
    pub(super) fn run(&self, case: &Case) -> Row {
        let mut config = self.config();
        for (from, to) in case.edits {
            let from = self.fill(from);
            assert!(config.contains(&from), "{}: {from}", case.name);
            config = config.replacen(&from, &self.fill(to), 1);
        }
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let config = format!("{config}// case {number}\n");
        drop(self.clients.take());
        let asked = self.clients.asked();
        let (guard, reason) = self.deploy(case, &config);
        self.until_all_run(&self.base);
        let wrong_responses = self.clients.take();
        if case.condition == Condition::LosesListener {
            self.find_ports();
            drop(self.clients.take());
        }
        let asked = self.clients.asked() - asked;
        let why = wrong_responses.first().map(|one| &one.why);
        print_progress(format_args!(
            "{}: {guard} after {asked} requests, {why:?}",
            case.name
        ));
        row(case, guard, reason, &wrong_responses)
    }

    /// The guard that stopped the bundle, with its message.
    fn deploy(&self, case: &Case, config: &str) -> (&'static str, String) {
        let body = json!({"name": "edge", "files": self.files(config)});
        let made = self.world.post("bundles", &body).json();
        if made["state"] != "signed" {
            let mut diagnostics = made["diagnostics"].as_array().into_iter().flatten();
            let error = diagnostics.find(|one| one["severity"] == "error");
            return ("tests", error.unwrap_or(&made)["message"].to_string());
        }
        if let (Guards::All, Some(risk)) = (self.guards, self.risk(&made)) {
            return ("policy", risk);
        }
        let body = json!({
            "bundle": made["id"], "batch_count": BATCH, "soak_secs": 4, "deadline_secs": 40,
            "gate": {
                "min_requests": 20, "p99_slack_ms": 1_000, "max_cpu_increase_percent": 100_000,
            },
        });
        let planned = self.world.post("rollouts", &body).json();
        let id = planned["id"].as_str().unwrap().to_owned();
        if case.condition == Condition::LoadDoubles {
            self.clients.scale_load(2);
        }
        self.world
            .post(&format!("rollouts/{id}/start"), &Value::Null);
        let ended = self.follow(case, &id);
        self.clients.scale_load(1);
        let reason = ended["reason"].as_str().unwrap_or_default().to_owned();
        if ended["state"] != "completed" {
            let guard = if reason.contains("live test") {
                "live test"
            } else if reason.contains("rejected the bundle") {
                "node"
            } else {
                "gate"
            };
            return (guard, reason);
        }
        let base = &self.base;
        let nodes = self.world.get("nodes");
        let nodes = nodes["items"].as_array().unwrap().iter();
        let ids: Vec<&str> = nodes.map(|node| node["id"].as_str().unwrap()).collect();
        self.world
            .post(&format!("bundles/{base}/assign"), &json!({"nodes": ids}));
        ("", reason)
    }

    /// The first risk for which a second person refuses a bundle under the policy `risky`. A bundle with the class
    /// `unlisted` alone, such as one with a new target, is approved: its diff shows nothing else.
    fn risk(&self, made: &Value) -> Option<String> {
        let new = made["id"].as_str().unwrap();
        let diff = self
            .world
            .get(&format!("bundles/{new}/diff?before={}", self.base));
        let risks = diff["risks"].as_array().unwrap_or_else(|| panic!("{diff}"));
        let first = risks.iter().find(|risk| risk["class"] != "unlisted")?;
        Some(format!(
            "{}: {}",
            first["class"].as_str().unwrap_or_default(),
            first["change"].as_str().unwrap_or_default()
        ))
    }

    fn follow(&self, case: &Case, id: &str) -> Value {
        let since = Stopwatch::start();
        loop {
            let found = self.world.get(&format!("rollouts/{id}"));
            let ends = ["completed", "rolled_back", "cancelled", "paused"];
            if ends.iter().any(|end| found["state"] == *end) {
                return found;
            }
            if case.condition == Condition::LoadChanges {
                self.clients
                    .scale_load(1 + since.elapsed().as_secs() / 3 % 3);
            }
            assert!(since.elapsed() < TIMEOUT, "{}: {found}", case.name);
            pause(LOOK_INTERVAL);
        }
    }
}

/// In two days.
#[expect(clippy::disallowed_methods, reason = "a test reads the clock")]
fn soon() -> SystemTime {
    SystemTime::now() + Duration::from_hours(48)
}

fn row(case: &Case, guard: &'static str, reason: String, wrong_responses: &[WrongResponse]) -> Row {
    let inside = wrong_responses
        .iter()
        .filter(|one| one.node < BATCH)
        .count();
    let first = wrong_responses.iter().map(|one| one.at).min();
    let last = wrong_responses.iter().map(|one| one.at).max();
    let span = last
        .zip(first)
        .map(|(last, first)| last.saturating_sub(first));
    Row {
        case: case.name,
        guard,
        wrong_inside: inside,
        wrong_outside: wrong_responses.len() - inside,
        wrong_secs: span.unwrap_or_default().as_secs_f64(),
        reason,
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // Its requests must not find nodes that have ended.
        assert!(!self.agent.events().is_empty(), "the agent was asked");
    }
}

/// Shows the progress of a run that takes minutes.
pub(super) fn print_progress(progress: std::fmt::Arguments<'_>) {
    std::io::Write::write_fmt(&mut std::io::stderr(), format_args!("{progress}\n")).ok();
}
