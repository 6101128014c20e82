//! Nodes on one thread: each enrols, follows its orders and reports, until the fleet is dropped.
#![expect(clippy::expect_used, reason = "a simulation may stop, and says why")]

use crate::fault::PlantedFault;
use crate::host::{Shared, SimulatedHost};
use crate::operator::Operator;
use control_client::{Client, Settings};
use control_wire::BundleId;
use rustls::{ClientConfig, RootCertStore};
use std::collections::BTreeMap;
use std::fs;
use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// Between the starts of two nodes: 200 nodes in a second.
const START_GAP: Duration = Duration::from_millis(5);
/// Nodes are at 127.64.0.1 and up: each has the rate limits of an address of its own.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 64, 0, 1);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIME: Duration = Duration::from_secs(10);

/// Size of a fleet, and the interval of its reports.
#[derive(Clone, Copy, Debug)]
pub struct FleetOptions {
    /// The number of the first node, to run several fleets.
    pub first: usize,
    /// Number of nodes.
    pub nodes: usize,
    /// Nodes have the labels `group=0`, `group=1`, … in rotation, for concurrent rollouts.
    pub groups: usize,
    /// Maximum time between two reports; the control plane requests 30 s.
    pub max_interval: Duration,
}

/// Nodes of one project, on a thread of their own until the fleet is dropped.
#[derive(Debug)]
pub struct SimulatedFleet {
    options: FleetOptions,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    _folder: TempDir,
}

impl FleetOptions {
    /// This many nodes in this many groups, which report every second.
    pub fn new(nodes: usize, groups: usize) -> Self {
        Self {
            first: 0,
            nodes,
            groups: groups.max(1),
            max_interval: Duration::from_secs(1),
        }
    }
}

impl SimulatedFleet {
    /// Starts the nodes, and waits until all of them are enrolled and online.
    ///
    /// # Panics
    ///
    /// If the control plane does not admit them in time.
    pub fn start(operator: &Operator, options: FleetOptions) -> Self {
        let all = options.nodes;
        let folder = tempfile::tempdir().expect("a temporary folder is created");
        // A token determines its nodes' labels, so each group has one.
        let token = folder.path().join("token");
        for group in 0..options.groups {
            let secret = operator.enrolment_token(all, group);
            fs::write(token.with_extension(group.to_string()), secret).expect("room for a token");
        }
        let shared = Arc::new(Shared::new(all));
        let (stop, stopped) = oneshot::channel();
        let url = operator.base_url().to_owned();
        let project = operator.project().to_owned();
        let nodes = Arc::clone(&shared);
        let thread = std::thread::spawn(move || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            let runtime = runtime.enable_all().build().expect("the runtime starts");
            runtime.block_on(live(&nodes, options, url, project, token, stopped));
        });
        let fleet = Self {
            options,
            shared,
            stop: Some(stop),
            thread: Some(thread),
            _folder: folder,
        };
        operator.until_online(options.first + all);
        fleet.take_positions(operator);
        fleet
    }

    /// Plants a fault in a bundle.
    ///
    /// # Panics
    ///
    /// If `bundle` is not an identifier.
    pub fn plant(&self, bundle: &str, planted: PlantedFault) {
        let bundle: BundleId = bundle.parse().expect("the identifier is valid");
        self.shared.planted_faults.rcu(|old| {
            let mut new = BTreeMap::clone(old);
            new.insert(bundle, planted);
            new
        });
    }

    /// Removes the fault from a bundle, and resumes stopped nodes.
    ///
    /// # Panics
    ///
    /// If `bundle` is not an identifier.
    pub fn heal(&self, bundle: &str) {
        let bundle: BundleId = bundle.parse().expect("the identifier is valid");
        self.shared.heal(bundle);
    }

    /// Its size.
    pub fn options(&self) -> FleetOptions {
        self.options
    }

    /// Number of nodes that run the bundle.
    ///
    /// # Panics
    ///
    /// If `bundle` is not an identifier.
    pub fn running(&self, bundle: &str) -> usize {
        let bundle: BundleId = bundle.parse().expect("the identifier is valid");
        let active = self.shared.active.iter();
        let running = active.filter(|active| **active.load() == Some(bundle));
        running.count()
    }

    /// Rollouts move the nodes of a group in the order of their identifiers.
    fn take_positions(&self, operator: &Operator) {
        let FleetOptions {
            first,
            nodes,
            groups,
            max_interval: _,
        } = self.options;
        let mut listed = operator.nodes();
        listed.sort();
        let numbers = listed.iter().filter_map(|(_, name)| {
            let number: usize = name.rsplit_once('-')?.1.parse().ok()?;
            number.checked_sub(first).filter(|own| *own < nodes)
        });
        let mut next = vec![0; groups];
        for own in numbers {
            let (Some(next), Some(position)) =
                (next.get_mut(own % groups), self.shared.positions.get(own))
            else {
                continue;
            };
            position.store(*next, Ordering::Relaxed);
            *next += 1;
        }
    }
}

impl Drop for SimulatedFleet {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap_or_default();
        }
    }
}

async fn live(
    shared: &Arc<Shared>,
    options: FleetOptions,
    url: String,
    project: String,
    token: PathBuf,
    stopped: oneshot::Receiver<()>,
) {
    let tls = tls();
    let mut nodes = JoinSet::new();
    for number in 0..options.nodes {
        let group = number % options.groups;
        let named = options.first + number;
        let settings = Settings {
            url: url.clone(),
            project: Some(project.clone()),
            enrolment_token_file: Some(token.with_extension(group.to_string())),
            data_dir: PathBuf::new(),
            machine_key_file: None,
            ca_file: None,
            name: format!("edge-{named}"),
            labels: BTreeMap::from([("group".to_owned(), group.to_string())]),
            version: env!("CARGO_PKG_VERSION"),
            schema_version: 1,
        };
        let http = http(named, tls.clone());
        let client = Client::simulated(settings, http, options.max_interval);
        let host = SimulatedHost::new(number, Arc::clone(shared));
        nodes.spawn(run(client, host));
    }
    // Nodes never end by themselves.
    drop(stopped.await);
    nodes.shutdown().await;
}

async fn run(client: Client, mut host: SimulatedHost) {
    let (number, shared) = (host.number, Arc::clone(&host.shared));
    sleep(START_GAP * u32::try_from(number).unwrap_or(u32::MAX)).await;
    let mut running = pin!(client.run(&mut host));
    loop {
        shared.revival(number).await;
        // A stopped node makes no progress until it is revived.
        poll_fn(|context| {
            if shared.is_frozen(number) {
                return Poll::Ready(());
            }
            running.as_mut().poll(context)
        })
        .await;
    }
}

fn http(number: usize, tls: ClientConfig) -> reqwest::Client {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    let address = Ipv4Addr::from_bits(FIRST_ADDRESS.to_bits().saturating_add(number));
    let client = reqwest::Client::builder()
        .tls_backend_preconfigured(tls)
        .local_address(Some(address.into()))
        .no_proxy()
        .http1_only()
        .connect_timeout(CONNECT_TIME)
        .timeout(RESPONSE_TIMEOUT)
        .build();
    client.expect("an HTTP client")
}

/// The control plane of a simulation uses plain HTTP; without this every client loads the system's
/// root certificates.
fn tls() -> ClientConfig {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.expect("the TLS versions are supported");
    versions
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth()
}
