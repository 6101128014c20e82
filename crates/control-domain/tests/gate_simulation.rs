//! The gate on fleets of unlike nodes: in other zones, with a hundred times the traffic, restarted
//! in a soak, or without any other node. Simulates requests with fixed seeds.
#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::indexing_slicing,
    reason = "a test may stop, and draws its numbers"
)]

#[path = "support/random.rs"]
mod random;

use control_domain::{BatchNode, Comparison, Figures, Gate, GateVerdict};
use control_wire::{LATENCY_BOUNDS_MS, NodeId, RouteTraffic, Traffic};
use random::Random;
use uuid::Uuid;

/// Number of harmless batches, of which at most one in 200 may be stopped.
const HARMLESS: usize = 1_200;
/// Number of harmful batches of each kind and fleet.
const HARMFUL: usize = 8;
/// Number of evaluations per batch, each with new requests.
const LOOKS: usize = 4;
/// Shares of the routes in a node's requests.
const ROUTES: [(&str, f64); 4] = [("api", 0.6), ("web", 0.3), ("docs", 0.06), ("item", 0.04)];
/// Means of counts that are drawn exactly; the seeds are chosen for it.
const MAX_POISSON_MEAN: f64 = 20.0;
/// Deviations at which the normal distribution is cut into equally likely parts: their medians.
const QUANTILES: [f64; 10] = [
    -1.645, -1.036, -0.674, -0.385, -0.126, 0.126, 0.385, 0.674, 1.036, 1.645,
];

/// A node's own properties, which no bundle changes.
#[derive(Clone, Debug)]
struct Node {
    /// Requests until the next evaluation.
    requests: f64,
    median_ms: f64,
    /// Share of requests for missing paths.
    missing: f64,
    cpu_percent: f64,
    /// Evaluation before which the node restarts; 0 without a restart.
    restarts_at: usize,
}

/// Effect of a bundle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Bundle {
    Harmless,
    /// The route `item` is answered 404, and each of its clients sends so many requests.
    LostRoute(f64),
    /// Durations grow by this factor.
    Slower(f64),
    /// This share of requests is answered 500.
    Errors(f64),
}

/// Numbers of nodes in the batch and of those that have not switched.
#[derive(Clone, Copy, Debug)]
struct Fleet {
    batch: usize,
    later: usize,
    /// Factor of the traffic of the first node of the batch, and of the first later node.
    busiest: (f64, f64),
}

const FLEETS: [Fleet; 8] = [
    fleet(1, 0, (1.0, 1.0)),
    fleet(1, 1, (1.0, 1.0)),
    fleet(2, 0, (1.0, 1.0)),
    fleet(1, 5, (1.0, 1.0)),
    fleet(2, 4, (1.0, 1.0)),
    fleet(3, 3, (1.0, 1.0)),
    fleet(2, 3, (100.0, 1.0)),
    fleet(1, 3, (1.0, 100.0)),
];

const fn fleet(batch: usize, later: usize, busiest: (f64, f64)) -> Fleet {
    Fleet {
        batch,
        later,
        busiest,
    }
}

impl Node {
    /// Draws a node that differs from the rest by up to `offset`, such as 0.5 for half as fast.
    fn draw(random: &mut Random, requests: f64, offset: f64) -> Self {
        Self {
            requests: requests * random.between(1.0 - offset / 2.0, 1.0 + offset / 2.0),
            median_ms: 25.0 * random.between(1.0, 1.0 + offset),
            missing: 0.02 + random.between(0.0, 0.2 * offset),
            cpu_percent: 20.0 + 150.0 * random.between(0.0, offset),
            restarts_at: 0,
        }
    }

    /// Adds the requests until the next evaluation.
    fn serve(&self, random: &mut Random, bundle: Bundle, counters: &mut Traffic) {
        for (name, share) in ROUTES {
            let (mut requests, mut median_ms) = (self.requests * share, self.median_ms);
            let (mut missing, mut errors) = (self.missing, 0.002);
            match bundle {
                Bundle::LostRoute(retries) if name == "item" => {
                    (requests, missing) = (requests * retries, 1.0);
                }
                Bundle::Slower(factor) => median_ms *= factor,
                Bundle::Errors(share) => errors += share,
                Bundle::Harmless | Bundle::LostRoute(_) => {}
            }
            let route = counters.routes.entry(name.to_owned()).or_default();
            answer(random, route, requests, (missing, errors), median_ms);
        }
    }
}

/// Adds about so many requests, with shares of 404 and 500.
fn answer(
    random: &mut Random,
    route: &mut RouteTraffic,
    requests: f64,
    (missing, errors): (f64, f64),
    median_ms: f64,
) {
    let mut all = 0;
    for deviation in QUANTILES {
        let count = random.poisson(requests / QUANTILES.len() as f64);
        let ms = median_ms * (0.5 * deviation).exp();
        let bounds = LATENCY_BOUNDS_MS.iter();
        let bucket = bounds.take_while(|bound| f64::from(**bound) < ms).count();
        route.latency[bucket] += count;
        *route.latency_us.get_or_insert_default() += count * (ms * 1_000.0) as u64;
        all += count;
    }
    let missing = if missing < 1.0 {
        random.poisson(all as f64 * missing).min(all)
    } else {
        all
    };
    let errors = random.poisson(all as f64 * errors).min(all - missing);
    route.requests += all;
    route.errors += errors;
    let good = all - missing - errors;
    for (status, count) in [(200, good), (404, missing), (500, errors)] {
        *route.statuses.entry(status).or_default() += count;
    }
    *route.sizes.entry(12).or_default() += good + errors;
    *route.sizes.entry(5).or_default() += missing;
    for (reason, count) in [
        ("route_not_found", missing),
        ("upstream_closed_early", errors),
    ] {
        *route.reasons.entry(reason.to_owned()).or_default() += count;
    }
}

/// Verdicts of the evaluations of a batch.
fn verdicts(
    random: &mut Random,
    (batch, later): (&[Node], &[Node]),
    bundle: Bundle,
) -> Vec<GateVerdict> {
    let none = |nodes: &[Node]| vec![Traffic::default(); nodes.len()];
    let (mut before, mut samples) = (none(batch), none(later));
    for _ in 0..LOOKS {
        for (node, counters) in batch.iter().zip(&mut before) {
            node.serve(random, Bundle::Harmless, counters);
        }
        for (node, counters) in later.iter().zip(&mut samples) {
            node.serve(random, Bundle::Harmless, counters);
        }
    }
    let (mut own, mut others) = (none(batch), samples.clone());
    (1..=LOOKS)
        .map(|look| {
            let own_side = batch.iter().zip(&mut own).map(|pair| (pair, bundle));
            let other_side = later.iter().zip(&mut others);
            let other_side = other_side.map(|pair| (pair, Bundle::Harmless));
            for ((node, counters), bundle) in own_side.chain(other_side) {
                if node.restarts_at == look {
                    *counters = Traffic::default();
                }
                node.serve(random, bundle, counters);
            }
            let batch = switched(batch, &own, &before);
            let rest = unswitched(&batch, (later, &others, &samples), &before);
            Gate::DEFAULT.judge(&Comparison { batch, rest })
        })
        .collect()
}

fn switched(nodes: &[Node], own: &[Traffic], before: &[Traffic]) -> Figures {
    let mut figures = Figures::default();
    for (number, node) in nodes.iter().enumerate() {
        figures.add_switched(BatchNode {
            node: NodeId(Uuid::from_u128(number as u128)),
            cpu_percent: node.cpu_percent,
            traffic: Some(own[number].clone()),
            sample: Some((node.cpu_percent, Some(before[number].clone()))),
            same_bundle: false,
            has_reported: true,
        });
    }
    figures
}

/// The side that the store collects: later nodes since their samples, and if few of those serve, the
/// batch before.
fn unswitched(
    batch: &Figures,
    (later, others, samples): (&[Node], &[Traffic], &[Traffic]),
    before: &[Traffic],
) -> Figures {
    let gate = Gate::DEFAULT;
    let add = |mut figures: Figures| {
        for (number, node) in later.iter().enumerate() {
            let now = Some(others[number].clone());
            figures.add(node.cpu_percent, now, samples.get(number));
        }
        figures
    };
    let mut rest = add(Figures::default());
    if gate.has_idle_rest(batch, &rest) {
        rest = add(Figures::default().without_idle_nodes(gate.min_requests));
    }
    if rest.nodes == 0 || (1..3).contains(&rest.serving()) {
        for counters in before {
            rest.add_earlier(20.0, Some(counters.clone()), gate.min_requests);
        }
    }
    rest
}

/// Draws the nodes of a fleet.
fn nodes(random: &mut Random, fleet: Fleet, requests: f64, offset: f64) -> (Vec<Node>, Vec<Node>) {
    let mut draw = |count, factor: f64| {
        let nodes = (0..count).map(|_| Node::draw(random, requests, offset));
        let mut nodes: Vec<Node> = nodes.collect();
        if let Some(node) = nodes.first_mut() {
            node.requests *= factor;
        }
        nodes
    };
    let (batch, later) = fleet.busiest;
    (draw(fleet.batch, batch), draw(fleet.later, later))
}

#[test]
fn at_most_one_harmless_batch_of_two_hundred_unlike_nodes_is_stopped() {
    let mut random = Random::new(41, MAX_POISSON_MEAN);
    let mut stops = Vec::new();
    let mut passes = 0;
    for batch in 0..HARMLESS {
        let fleet = FLEETS[batch % FLEETS.len()];
        let requests = [60.0, 200.0, 1_000.0][batch / FLEETS.len() % 3];
        let offset = [0.0, 0.5, 1.0, 2.0][batch % 4];
        let (mut own, mut later) = nodes(&mut random, fleet, requests, offset);
        let mut all = own.iter_mut().chain(&mut later);
        if let Some(node) = all.nth(batch % 7) {
            node.restarts_at = batch % (LOOKS + 1);
        }
        let found = verdicts(&mut random, (&own, &later), Bundle::Harmless);
        passes += usize::from(found.last() == Some(&GateVerdict::Passed));
        let failed = found.into_iter().find_map(|verdict| match verdict {
            GateVerdict::Failed(failure) => Some(failure.to_string()),
            GateVerdict::Passed | GateVerdict::NoData(_) => None,
        });
        stops.extend(failed.map(|why| (batch, fleet, why)));
    }
    println!("{} of {HARMLESS} stopped, {passes} passed", stops.len());
    assert!(stops.len() * 200 <= HARMLESS, "{stops:#?}");
    assert!(HARMLESS / 2 < passes, "{passes} have data and pass");
}

#[test]
fn no_harmful_batch_passes_if_its_fleet_serves_enough() {
    let mut random = Random::new(42, MAX_POISSON_MEAN);
    let mut missed = Vec::new();
    for fleet in FLEETS {
        for bundle in [
            Bundle::LostRoute(1.0),
            Bundle::LostRoute(4.0),
            Bundle::LostRoute(30.0),
            Bundle::Slower(1.3),
            Bundle::Errors(0.02),
        ] {
            for _ in 0..HARMFUL {
                let (own, later) = nodes(&mut random, fleet, 2_500.0, 0.05);
                let found = verdicts(&mut random, (&own, &later), bundle);
                let last = found.into_iter().next_back();
                if !matches!(last, Some(GateVerdict::Failed(_))) {
                    missed.push((fleet, bundle, last));
                }
            }
        }
    }
    assert!(missed.is_empty(), "{} of {missed:#?}", missed.len());
}
