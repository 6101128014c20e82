//! The fleet of the demo: nodes that enrol, a bundle that is rolled out, and a bad one that takes itself
//! back.

use crate::control::Control;
use proxy_load::clock::{Stopwatch, pause};
use proxy_testkit::{Launch, Proxyd, RawClient, Upstream, Wire, closed_port, get};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{JoinHandle, spawn};
use std::time::Duration;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;

const NODES: usize = 3;
/// Maximum time of any step of a node.
const NODE_TIMEOUT: Duration = Duration::from_mins(1);
/// Polling interval; a key may send five requests a second.
const POLL_INTERVAL: Duration = Duration::from_millis(500);
/// Between two rounds of requests to all nodes.
const ROUND: Duration = Duration::from_millis(20);
/// A gate with enough data within seconds, and tolerance for a busy machine.
const GATE: &str = r#"{"min_requests":50,"p99_slack_ms":1000,"max_cpu_increase_percent":10000}"#;

/// Nodes of the demo under a steady load; everything ends when this is dropped.
pub(super) struct Fleet {
    /// Dropped first: clients must not send requests to a stopped node.
    _client: Client,
    nodes: Vec<Proxyd>,
    upstream: Upstream,
}

impl Fleet {
    /// Enrols nodes of this binary, rolls out two good bundles and a bad one, and compares the
    /// nodes' responses after each.
    pub(super) fn show(control: &Control, binary: &Path) -> Result<Self, TaskError> {
        let nodes = enrol(control, binary)?;
        control.show(&["node", "list"])?;
        let upstream = Upstream::saying("well\n");
        // The nodes have no traffic yet for a gate to compare.
        let flags = [
            "--batch-count",
            "3",
            "--soak-secs",
            "0",
            "--skip-gate",
            "true",
        ];
        control.bundle("first", &configuration("first", upstream.address()))?;
        expect("completed", &control.roll_out("first", &flags)?)?;
        let fleet = Self {
            _client: Client::start(addresses(&nodes)?),
            nodes,
            upstream,
        };
        fleet.expect_all("first")?;
        let upstream = fleet.upstream.address();
        fleet.roll_out(control, "second", upstream, "completed")?;
        say("\ndemo: the upstream of the next bundle refuses connections");
        fleet.roll_out(control, "bad", closed_port(), "rolled_back")?;
        control.show(&["node", "list"])?;
        say(
            "demo: the rollout of the bad bundle was rolled back; every node serves its former bundle",
        );
        Ok(fleet)
    }

    /// A rollout node by node over a gate. Every node serves `second` afterwards: a bad bundle that
    /// follows is rolled back.
    fn roll_out(
        &self,
        control: &Control,
        name: &str,
        upstream: SocketAddr,
        end: &str,
    ) -> Result<(), TaskError> {
        let flags = ["--batch-count", "1", "--soak-secs", "2", "--gate", GATE];
        control.bundle(name, &configuration(name, upstream))?;
        expect(end, &control.roll_out(name, &flags)?)?;
        self.expect_all("second")
    }

    fn expect_all(&self, bundle: &str) -> Result<(), TaskError> {
        for address in addresses(&self.nodes)? {
            let served = ask(address);
            if served.as_deref() != Some(bundle) {
                let served = served.unwrap_or_else(|| "nothing".to_owned());
                let failure = format!("the node at {address} serves {served} in place of {bundle}");
                return Err(TaskError::Failed(failure));
            }
            say(format!("demo: the node at {address} serves {bundle}"));
        }
        Ok(())
    }

    /// Suggestions to try.
    pub(super) fn invitation(&self) -> String {
        let addresses = addresses(&self.nodes).unwrap_or_default();
        let urls = addresses
            .iter()
            .map(|at| format!("\n  curl -i http://{at}/"));
        format!(
            "demo: the nodes of the fleet:{}\n",
            urls.collect::<String>()
        )
    }
}

/// Starts the nodes, and waits until the control plane has all of them.
fn enrol(control: &Control, binary: &Path) -> Result<Vec<Proxyd>, TaskError> {
    let token = control.enrolment_token(NODES)?;
    let start = |number: usize| {
        let name = format!("edge-{number}");
        let folder = token.with_file_name(&name);
        let own = format!(
            "worker-threads 1\ncontrol-plane {{\n    url \"{}\"\n    project \"{}\"\n    \
             enrolment-token-file \"{}\"\n    data-dir \"{}\"\n    node-name \"{name}\"\n    \
             allow {{ upstreams-on-loopback #true; }}\n}}\n",
            control.url(),
            control.project(),
            token.display(),
            folder.display(),
        );
        Launch::new(binary, &own).start()
    };
    let nodes: Vec<Proxyd> = (1..=NODES).map(start).collect();
    let since = Stopwatch::start();
    while control.nodes()? < NODES {
        if since.elapsed() > NODE_TIMEOUT {
            let failure = "the nodes have not enrolled within a minute";
            return Err(TaskError::Failed(failure.to_owned()));
        }
        pause(POLL_INTERVAL);
    }
    Ok(nodes)
}

fn expect(wanted: &str, state: &str) -> Result<(), TaskError> {
    if wanted == state {
        return Ok(());
    }
    let failure = format!("the rollout is {state}, not {wanted}");
    Err(TaskError::Failed(failure))
}

/// Answers that name their bundle; the kernel chooses a port for each node.
fn configuration(name: &str, upstream: SocketAddr) -> String {
    format!(
        r#"listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
routes {{
    route "all" {{
        upstream "demo"
        policies {{ response-headers {{ set "X-Bundle" "{name}" }} }}
    }}
}}
upstreams {{ upstream "demo" {{ target "{upstream}" }} }}
"#
    )
}

fn addresses(nodes: &[Proxyd]) -> Result<Vec<SocketAddr>, TaskError> {
    let address = |node: &Proxyd| {
        let log = node.stderr();
        let logged = log.try_find(0, |record| record.text("message") == "listening");
        logged?.text("address").parse().ok()
    };
    let found: Option<Vec<SocketAddr>> = nodes.iter().map(address).collect();
    found.ok_or_else(|| TaskError::Failed("a node listens nowhere".to_owned()))
}

/// The bundle that an answer names.
fn ask(address: SocketAddr) -> Option<String> {
    let mut client = RawClient::try_connect(address).ok()?;
    Wire::send(&mut client, get("/", &[("connection", "close")])).ok()?;
    let response = client.try_response().ok()?;
    Some(response.fields.get("x-bundle")?.to_owned())
}

/// A client that sends requests to all nodes until it is dropped.
struct Client {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Client {
    fn start(addresses: Vec<SocketAddr>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for address in &addresses {
                    // The node's own counters show the result of the request.
                    drop(ask(*address));
                }
                pause(ROUND);
            }
        });
        Self {
            stop,
            thread: Some(thread),
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}
