//! False alarms of the gate, and its delay for harmful bundles. Simulates requests of nodes with
//! fixed seeds.
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

/// Number of batches per rollout, for the rate of wrongly stopped rollouts.
const BATCHES: u32 = 10;
/// Number of simulated rollouts, of which at most one may be stopped.
const ROLLOUTS: u32 = 200;
/// Number of evaluations per batch, each with new requests.
const LOOKS: u32 = 4;
/// Means of counts that are drawn exactly; the seeds are chosen for it.
const MAX_POISSON_MEAN: f64 = 100.0;
const ROUTES: [&str; 4] = ["api", "web", "login", "stream"];

/// Responses of one route.
#[derive(Clone, Debug)]
struct Behaviour {
    /// Weight of the route's share of requests.
    weight: f64,
    /// Statuses other than 200, with their shares.
    statuses: Vec<(u16, f64)>,
    median_ms: f64,
    /// Standard deviation of the latency's logarithm.
    scatter: f64,
    first_byte_ms: f64,
    median_bytes: f64,
}

/// Behaviour of the nodes on one side of the comparison.
#[derive(Clone, Debug)]
struct World {
    routes: Vec<Behaviour>,
    failed_handshakes: f64,
    failed_headers: f64,
    /// Share of requests over TLS, with one connection per ten requests.
    with_tls: f64,
    requests: f64,
}

impl Random {
    fn is(&mut self, share: f64) -> bool {
        self.even() < share
    }
}

impl World {
    /// Draws routes with random shares, failures and latencies.
    fn draw(random: &mut Random, requests: f64) -> Self {
        let routes = [0.5, 0.3, 0.15, 0.05].map(|weight| Behaviour {
            weight,
            statuses: vec![
                (500, random.between(0.0, 0.01)),
                (404, random.between(0.0, 0.05)),
                (429, random.between(0.0, 0.01)),
                (401, random.between(0.02, 0.08)),
                (302, random.between(0.0, 0.2)),
            ],
            median_ms: random.between(3.0, 60.0),
            scatter: random.between(0.2, 1.0),
            first_byte_ms: random.between(5.0, 40.0),
            median_bytes: random.between(200.0, 20_000.0),
        });
        Self {
            routes: routes.to_vec(),
            failed_handshakes: random.between(0.0, 0.03),
            failed_headers: 0.0,
            with_tls: random.between(0.2, 0.8),
            requests,
        }
    }

    /// Adds a node's traffic until the next evaluation.
    fn serve(&self, random: &mut Random, node: &mut Traffic) {
        let all: f64 = self.routes.iter().map(|route| route.weight).sum();
        for (name, behaviour) in ROUTES.iter().zip(&self.routes) {
            let route = node.routes.entry((*name).to_owned()).or_default();
            for _ in 0..random.poisson(self.requests * behaviour.weight / all) {
                behaviour.answer(random, route);
            }
        }
        let connections = random.poisson(self.requests / 10.0);
        let counts = node.connections.get_or_insert_default();
        for _ in 0..connections {
            let is_tls = random.is(self.with_tls);
            let is_failed = is_tls && random.is(self.failed_handshakes);
            counts.accepted += 1;
            counts.handshakes_completed += u64::from(is_tls && !is_failed);
            counts.handshakes_failed += u64::from(is_failed);
            counts.proxy_headers_failed += u64::from(random.is(self.failed_headers));
        }
    }
}

impl Behaviour {
    fn answer(&self, random: &mut Random, route: &mut RouteTraffic) {
        let mut drawn = random.even();
        let mut found = 200;
        for (status, share) in &self.statuses {
            if (0.0..*share).contains(&drawn) {
                found = *status;
            }
            drawn -= share;
        }
        let ms = self.median_ms * (self.scatter * random.normal()).exp();
        let bytes = self.median_bytes * (0.8 * random.normal()).exp();
        route.requests += 1;
        route.errors += u64::from(found >= 500);
        *route.statuses.entry(found).or_default() += 1;
        let reason = match found {
            500 => Some("upstream_closed_early"),
            404 => Some("route_not_found"),
            _ => None,
        };
        if let Some(reason) = reason {
            *route.reasons.entry(reason.to_owned()).or_default() += 1;
        }
        route.latency[bucket(ms)] += 1;
        *route.latency_us.get_or_insert_default() += (ms * 1_000.0) as u64;
        *route.bytes_out.get_or_insert_default() += bytes as u64;
        *route.sizes.entry(size_class(bytes as u64)).or_default() += 1;
        let waited = self.first_byte_ms * (0.5 * random.normal()).exp();
        route.first_byte.get_or_insert_default()[bucket(waited)] += 1;
    }
}

/// Returns the number of bits, which is the size class.
fn size_class(bytes: u64) -> u8 {
    (u64::BITS - bytes.leading_zeros()) as u8
}

fn bucket(ms: f64) -> usize {
    let bounds = LATENCY_BOUNDS_MS.iter();
    bounds.take_while(|bound| f64::from(**bound) < ms).count()
}

/// Returns the evaluation at which the gate stops a batch of `nodes` nodes, and its message.
fn stopped(
    random: &mut Random,
    (usual, changed): (&World, &World),
    (nodes, others): (usize, usize),
) -> Option<(u32, String)> {
    let mut before = vec![Traffic::default(); nodes];
    for _ in 0..LOOKS {
        for node in &mut before {
            usual.serve(random, node);
        }
    }
    let (mut batch, mut rest) = (
        vec![Traffic::default(); nodes],
        vec![Traffic::default(); others],
    );
    for look in 1..=LOOKS {
        for node in &mut batch {
            changed.serve(random, node);
        }
        for node in &mut rest {
            usual.serve(random, node);
        }
        let compared = Comparison {
            batch: switched(&batch, &before),
            rest: unmoved(&rest),
        };
        if let GateVerdict::Failed(failure) = Gate::DEFAULT.judge(&compared) {
            return Some((look, failure.to_string()));
        }
    }
    None
}

/// Creates the figures of a batch, with the traffic before the switch if it is known.
fn switched(batch: &[Traffic], before: &[Traffic]) -> Figures {
    let mut figures = Figures::default();
    for (number, now) in batch.iter().enumerate() {
        figures.add_switched(BatchNode {
            node: NodeId(Uuid::from_u128(number as u128)),
            cpu_percent: 20.0,
            traffic: Some(now.clone()),
            sample: before
                .get(number)
                .map(|before| (20.0, Some(before.clone()))),
            same_bundle: false,
            has_reported: true,
        });
    }
    figures
}

fn unmoved(rest: &[Traffic]) -> Figures {
    let mut figures = Figures::default();
    for node in rest {
        figures.add(20.0, Some(node.clone()), None);
    }
    figures
}

#[test]
fn at_most_one_harmless_rollout_of_two_hundred_is_stopped() {
    let mut random = Random::new(33, MAX_POISSON_MEAN);
    let mut stops = Vec::new();
    for rollout in 0..ROLLOUTS {
        let requests = [12.0, 40.0, 120.0][rollout as usize % 3];
        let usual = World::draw(&mut random, requests);
        let sizes = [(1, 5), (2, 4), (3, 3), (1, 1)][rollout as usize % 4];
        let found = (0..BATCHES).find_map(|_| stopped(&mut random, (&usual, &usual), sizes));
        stops.extend(found.map(|(look, why)| (rollout, look, why)));
    }
    assert!(stops.len() <= 1, "{stops:#?}");
}

/// Batches with a soak time of one evaluation, unless a suspicion extends it.
#[test]
fn few_harmless_batches_wait_for_more_requests() {
    let mut random = Random::new(35, MAX_POISSON_MEAN);
    let mut waits = Vec::new();
    for batch in 0..ROLLOUTS * 5 {
        let requests = [12.0, 40.0, 120.0, 1_000.0][batch as usize % 4];
        let usual = World::draw(&mut random, requests);
        let (nodes, others) = [(1, 5), (2, 4), (3, 3), (1, 1)][batch as usize / 4 % 4];
        let [before, batch, rest] = [nodes, nodes, others].map(|nodes| {
            let mut all = vec![Traffic::default(); nodes];
            for node in &mut all {
                usual.serve(&mut random, node);
            }
            all
        });
        let compared = Comparison {
            batch: switched(&batch, &before),
            rest: unmoved(&rest),
        };
        waits.extend(
            Gate::DEFAULT
                .suspicion(&compared)
                .map(|why| why.to_string()),
        );
    }
    assert!(waits.len() <= 10, "1 % of 1000: {waits:#?}");
}

/// A harmful change by a bundle: its name, a word in the verdict, and its effect.
type HarmfulChange = (&'static str, &'static str, fn(&mut World));

fn harmful_changes() -> Vec<HarmfulChange> {
    vec![
        ("a wrong order of routes", "serves", |world| {
            world.routes[0].weight += world.routes[1].weight;
            world.routes[1].weight = 0.0;
        }),
        ("404 in masses", "route_not_found", |world| {
            world.routes[1].statuses.push((404, 0.3));
            world.routes[1].statuses[1].1 = 0.0;
        }),
        ("429 in masses", "429", |world| {
            world.routes[0].statuses[2].1 = 0.4;
        }),
        ("413 in masses", "413", |world| {
            world.routes[0].statuses.push((413, 0.2));
        }),
        (
            "an upstream that hangs until clients leave",
            "499",
            |world| {
                world.routes[1].statuses.push((499, 0.5));
            },
        ),
        (
            "a PROXY header that clients do not send",
            "PROXY header",
            |world| {
                world.failed_headers = 0.5;
            },
        ),
        ("a lost agent", "401", |world| {
            for route in &mut world.routes {
                route.statuses[3].1 = 0.0;
            }
        }),
        ("a wrong certificate", "handshakes fail", |world| {
            world.failed_handshakes = 1.0;
        }),
        ("a lost listener with TLS", "connect with TLS", |world| {
            world.with_tls = 0.0;
        }),
        ("streams that are held back", "first byte", |world| {
            world.routes[3].first_byte_ms *= 20.0;
        }),
        ("a wrong upstream that answers 200", "bytes", |world| {
            world.routes[0].median_bytes /= 20.0;
        }),
        ("5xx", "5xx", |world| {
            world.routes[0].statuses[0].1 = 0.1;
        }),
        ("30 % slower", "ms", |world| {
            world.routes[0].median_ms *= 1.3;
        }),
    ]
}

#[test]
fn each_harmful_change_is_seen_though_other_nodes_have_some_of_it() {
    let mut random = Random::new(34, MAX_POISSON_MEAN);
    let mut missed = Vec::new();
    for (name, word, change) in harmful_changes() {
        for sizes in [(1, 5), (2, 4)] {
            let mut usual = World::draw(&mut random, 1_000.0);
            for route in &mut usual.routes {
                route.scatter = route.scatter.min(0.5);
                route.median_ms = route.median_ms.max(20.0);
            }
            let mut changed = usual.clone();
            change(&mut changed);
            match stopped(&mut random, (&usual, &changed), sizes) {
                Some((_, why)) if why.contains(word) => {}
                other => missed.push((name, sizes, other)),
            }
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

#[test]
fn two_of_a_hundred_give_no_verdict() {
    let with = |status: u16, count: u64| {
        let mut route = RouteTraffic {
            requests: 100,
            errors: if status < 500 { 0 } else { count },
            latency_us: Some(500_000),
            ..RouteTraffic::default()
        };
        route.latency[2] = 100;
        route.statuses.insert(200, 100 - count);
        route.statuses.insert(status, count);
        let mut node = Traffic::default();
        node.routes.insert("api".to_owned(), route);
        node
    };
    for status in [404, 429, 500] {
        for (count, expected) in [(2, true), (60, false)] {
            let compared = Comparison {
                batch: switched(&[with(status, count)], &[]),
                rest: unmoved(&[with(status, 0), with(status, 0), with(status, 0)]),
            };
            let passed = Gate::DEFAULT.judge(&compared) == GateVerdict::Passed;
            assert_eq!(passed, expected, "{count} of a hundred with {status}");
        }
    }
}

#[test]
fn a_verdict_names_its_figures_and_unjudged_routes() {
    let mut node = Traffic::default();
    for (name, requests) in [("api", 1_000), ("rare", 12)] {
        let mut route = RouteTraffic {
            requests,
            ..RouteTraffic::default()
        };
        route.latency[2] = requests;
        node.routes.insert(name.to_owned(), route);
    }
    let rest = unmoved(&[node.clone(), node.clone(), node.clone()]);
    let compared = |node: &Traffic| Comparison {
        batch: switched(std::slice::from_ref(node), std::slice::from_ref(node)),
        rest: rest.clone(),
    };
    let unseen = "; too few requests on route rare: not judged (12 of 100)";
    let passed = Gate::DEFAULT.explain(&compared(&node));
    let text = "nothing is worse among 1012 requests of the batch and 1012 of the others";
    assert_eq!(passed, format!("{text}{unseen}"));
    let mut bad = node.clone();
    bad.routes.get_mut("api").unwrap().errors = 200;
    let mut compared = compared(&bad);
    compared.batch = switched(&[bad], &[node]);
    let failed = Gate::DEFAULT.explain(&compared);
    let text = "route api: 200 of 1000 among 1000 requests of the batch, 0 of 1000 among 1000 on the others end \
                with 5xx; up to 10 of 1000 pass";
    assert_eq!(failed, format!("{text}{unseen}"));
}
