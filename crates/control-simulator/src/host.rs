//! The proxy of a simulated node: its verdicts on bundles, and its reports.

use crate::fault::{Fault, PlantedFault};
use arc_swap::ArcSwap;
use control_client::{Host, Measured, Started};
use control_wire::{BundleId, ConnectionTraffic, LATENCY_BOUNDS_MS, RouteTraffic, Traffic};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Notify;

/// Requests of each route by latency bucket, between two reports.
const LATENCY: [u64; LATENCY_BOUNDS_MS.len() + 1] = [200, 200, 60, 20, 12, 8, 0, 0, 0, 0, 0, 0];
/// Requests of each route between two reports.
const REQUESTS_PER_REPORT: u64 = 500;
/// Requests of each route that end with 5xx, between two reports, without any fault.
const USUAL_ERRORS: u64 = 1;
/// Requests of each route that a proxy serves between two crashes.
const REQUESTS_BEFORE_CRASH: u64 = 2;
/// Requests of each route that some other node answers with 404, 413 and 429 too.
const USUAL_STATUSES: [(u16, u64); 3] = [(404, 5), (413, 1), (429, 2)];
/// Connections between two reports, half of them with TLS.
const CONNECTIONS_PER_REPORT: u64 = 100;
/// TLS handshakes that fail between two reports, without any fault.
const USUAL_FAILED_HANDSHAKES: u64 = 1;
/// The sum of durations of each route between two reports, in microseconds.
const LATENCY_US: u64 = 1_270_000;
/// Streams of each route between two reports, and the bucket of their first byte.
const STREAMS: (u64, usize) = (50, 3);
const USUAL_CPU_PERCENT: f64 = 20.0;
const ROUTES: [&str; 2] = ["api", "web"];
/// Reports in which a late fault does not show.
const WELL_REPORTS: u64 = 2;

/// State that all nodes of a fleet share.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub(crate) planted_faults: ArcSwap<BTreeMap<BundleId, PlantedFault>>,
    /// Active bundle of each node, by its number.
    pub(crate) active: Vec<ArcSwap<Option<BundleId>>>,
    /// The place of each node in the order of identifiers, by its number.
    pub(crate) positions: Vec<AtomicUsize>,
    /// The bundle under which each node has stopped; `None` while it moves.
    pub(crate) frozen: Vec<ArcSwap<Option<BundleId>>>,
    pub(crate) revived: Notify,
}

impl Shared {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            active: (0..nodes).map(|_| ArcSwap::default()).collect(),
            positions: (0..nodes).map(AtomicUsize::new).collect(),
            frozen: (0..nodes).map(|_| ArcSwap::default()).collect(),
            ..Self::default()
        }
    }

    pub(crate) fn is_frozen(&self, number: usize) -> bool {
        let frozen = self.frozen.get(number);
        frozen.is_some_and(|frozen| frozen.load().is_some())
    }

    fn freeze(&self, number: usize, bundle: Option<BundleId>) {
        if let Some(frozen) = self.frozen.get(number) {
            frozen.store(Arc::new(bundle));
        }
    }

    /// Removes the fault from a bundle, and resumes nodes stopped under it.
    pub(crate) fn heal(&self, bundle: BundleId) {
        self.planted_faults.rcu(|old| {
            let mut new = BTreeMap::clone(old);
            new.remove(&bundle);
            new
        });
        for frozen in &self.frozen {
            if **frozen.load() == Some(bundle) {
                frozen.store(Arc::new(None));
            }
        }
        self.revived.notify_waiters();
    }

    /// Waits until the node is revived.
    pub(crate) async fn revival(&self, number: usize) {
        loop {
            let revived = self.revived.notified();
            if !self.is_frozen(number) {
                return;
            }
            revived.await;
        }
    }

    fn fault(&self, number: usize, bundle: Option<BundleId>) -> Option<Fault> {
        let planted_faults = self.planted_faults.load();
        let planted = planted_faults.get(&bundle?)?;
        let position = self.positions.get(number)?.load(Ordering::Relaxed);
        planted.share.includes(position).then_some(planted.fault)
    }
}

/// The proxy of one node.
#[derive(Debug)]
pub(crate) struct SimulatedHost {
    pub(crate) number: usize,
    pub(crate) shared: Arc<Shared>,
    bundle: Option<BundleId>,
    /// Number of reports since the bundle's activation.
    reports: u64,
    traffic: Traffic,
}

impl SimulatedHost {
    pub(crate) fn new(number: usize, shared: Arc<Shared>) -> Self {
        Self {
            number,
            shared,
            bundle: None,
            reports: 0,
            traffic: Traffic::default(),
        }
    }

    fn serve(&mut self, fault: Option<Fault>) {
        if fault == Some(Fault::CrashLoop) {
            self.traffic = Traffic::default();
        }
        for name in ROUTES {
            let first = ROUTES.first().copied().unwrap_or(name);
            let served = if fault == Some(Fault::Misrouted) {
                first
            } else {
                name
            };
            let route = self.traffic.routes.entry(served.to_owned()).or_default();
            serve_route(route, is_for(name, fault), self.reports);
        }
        if fault != Some(Fault::Idle) {
            let counts = self.traffic.connections.get_or_insert_default();
            accept(counts, fault);
        }
    }
}

fn accept(counts: &mut ConnectionTraffic, fault: Option<Fault>) {
    let (mut tls, mut failed) = (CONNECTIONS_PER_REPORT / 2, USUAL_FAILED_HANDSHAKES);
    match fault {
        Some(Fault::LostTls) => (tls, failed) = (0, 0),
        Some(Fault::WrongCertificate) => failed = tls,
        Some(_) | None => {}
    }
    counts.accepted += CONNECTIONS_PER_REPORT / 2 + tls;
    counts.handshakes_completed += tls - failed;
    counts.handshakes_failed += failed;
}

fn is_for(route: &str, fault: Option<Fault>) -> Option<Fault> {
    match fault {
        Some(Fault::RouteErrors(permille)) => {
            (Some(route) == ROUTES.first().copied()).then_some(Fault::Errors(permille))
        }
        other => other,
    }
}

fn serve_route(route: &mut RouteTraffic, fault: Option<Fault>, reports: u64) {
    let mut served = LATENCY;
    let mut errors = USUAL_ERRORS;
    let mut latency_us = LATENCY_US;
    let (streams, mut first_byte) = STREAMS;
    let mut statuses = BTreeMap::from(USUAL_STATUSES);
    match fault {
        Some(Fault::Status(status, permille)) => {
            *statuses.entry(status).or_default() += REQUESTS_PER_REPORT * permille / 1_000;
        }
        Some(Fault::HeldBack(bucket)) => first_byte = bucket,
        Some(Fault::Idle) => return,
        Some(Fault::CrashLoop) => {
            served = only(0, REQUESTS_BEFORE_CRASH);
            errors = 0;
            latency_us = REQUESTS_BEFORE_CRASH;
            statuses.clear();
        }
        Some(Fault::Errors(permille)) => errors += REQUESTS_PER_REPORT * permille / 1_000,
        Some(Fault::Flapping) if reports.is_multiple_of(2) => errors = REQUESTS_PER_REPORT,
        Some(Fault::Late) if WELL_REPORTS < reports => errors = REQUESTS_PER_REPORT,
        Some(Fault::Slow(bucket)) => {
            served = only(bucket, REQUESTS_PER_REPORT);
            latency_us = slow_us(bucket);
        }
        Some(Fault::Reason(name, permille)) => {
            let failures = route.reasons.entry(name.to_owned()).or_default();
            *failures += (REQUESTS_PER_REPORT * permille / 1_000).max(1);
        }
        Some(
            Fault::RouteErrors(_)
            | Fault::Misrouted
            | Fault::WrongCertificate
            | Fault::LostTls
            | Fault::Cpu(_)
            | Fault::Invalid
            | Fault::Stuck
            | Fault::Silent
            | Fault::Dead
            | Fault::Flapping
            | Fault::Late,
        )
        | None => {}
    }
    let requests: u64 = served.iter().sum();
    route.requests += requests;
    route.errors += errors.min(requests);
    for (total, count) in route.latency.iter_mut().zip(served) {
        *total += count;
    }
    let other: u64 = statuses.values().sum();
    statuses.insert(200, requests.saturating_sub(other + errors.min(requests)));
    statuses.insert(500, errors.min(requests));
    for (status, count) in statuses {
        *route.statuses.entry(status).or_default() += count;
    }
    *route.latency_us.get_or_insert_default() += latency_us;
    if let Some(count) = route.first_byte.get_or_insert_default().get_mut(first_byte) {
        *count += streams;
    }
}

/// The sum of durations of requests that end at the upper bound of a bucket, in microseconds.
fn slow_us(bucket: usize) -> u64 {
    let last = LATENCY_BOUNDS_MS.last().copied().unwrap_or_default();
    let bound = LATENCY_BOUNDS_MS.get(bucket).copied().unwrap_or(last * 2);
    REQUESTS_PER_REPORT * u64::from(bound) * 1_000
}

/// This many requests in one bucket.
fn only(bucket: usize, requests: u64) -> [u64; LATENCY.len()] {
    let mut latency = [0; LATENCY.len()];
    if let Some(count) = latency.get_mut(bucket) {
        *count = requests;
    }
    latency
}

impl Host for SimulatedHost {
    async fn activate(&mut self, started: Started) -> Result<(), Vec<String>> {
        let bundle = Some(started.bundle.order.bundle);
        match self.shared.fault(self.number, bundle) {
            Some(Fault::Invalid) => {
                return Err(vec!["listener \"web\": the address is in use".to_owned()]);
            }
            Some(Fault::Stuck) => {
                self.shared.freeze(self.number, bundle);
                self.shared.revival(self.number).await;
            }
            Some(_) | None => {}
        }
        self.bundle = bundle;
        self.reports = 0;
        self.traffic = Traffic::default();
        if let Some(active) = self.shared.active.get(self.number) {
            active.store(Arc::new(bundle));
        }
        Ok(())
    }

    fn measure(&mut self) -> Measured {
        self.reports += 1;
        let fault = self.shared.fault(self.number, self.bundle);
        self.serve(fault);
        let mut cpu_percent = USUAL_CPU_PERCENT;
        let mut traffic = Some(self.traffic.clone());
        match fault {
            Some(Fault::Cpu(more)) => cpu_percent += f64::from(more),
            Some(Fault::Silent) => traffic = None,
            // The report was sent when the node stops.
            Some(Fault::Dead) => self.shared.freeze(self.number, self.bundle),
            Some(_) | None => {}
        }
        Measured {
            cpu_percent,
            traffic,
        }
    }
}
