//! The gate after each batch: a comparison of the switched nodes with the rest. No data is a no.

use crate::refusal::Refusal;
use control_wire::{LATENCY_BOUNDS_MS, RouteTraffic, Traffic};
use proxy_errors::Reason;
use std::collections::BTreeMap;
use std::fmt;

/// How much worse a batch may be than the nodes that it is compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gate {
    /// Fewer requests than this, on either side, say nothing.
    pub min_requests: i64,
    /// By how much the share of 5xx may grow, in thousandths of all requests.
    pub max_error_increase_permille: i64,
    /// The batch's 99th percentile of latency, in percent of that of the rest.
    pub max_p99_percent: i64,
    /// What the percentile may grow by in any case, in milliseconds.
    pub p99_slack_ms: i64,
    /// By how much the mean CPU of a node may grow; 100 is one core.
    pub max_cpu_increase_percent: i64,
    /// Failures of a reason that the rest does not have. Of reasons with a 4xx status, which clients bring
    /// about too, as many more as 5xx may grow by; clients that go away do not count.
    pub max_new_failures: i64,
}

/// What nodes report together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Figures {
    /// Nodes that were looked at.
    pub nodes: i64,
    /// Those that say nothing of what they serve.
    pub silent: i64,
    /// The sum of their CPU; 100 is one core.
    pub cpu_percent: f64,
    /// What they served, by route.
    pub traffic: Traffic,
}

/// The two sides of a gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Comparison {
    /// The nodes of the batch since they switched.
    pub batch: Figures,
    /// Nodes that were not moved yet, since the batch was opened; or the batch itself before.
    pub rest: Figures,
}

/// What the gate says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateVerdict {
    /// The batch is as well as the rest.
    Passed,
    /// It is not.
    Failed(GateFailure),
    /// There is too little to say so.
    NoData(String),
}

/// Why a batch does not pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GateFailure {
    /// Too many answers with 5xx.
    Errors(String),
    /// A reason of failure that the rest does not have.
    NewReason(String),
    /// Too slow.
    Latency(String),
    /// Too much CPU.
    Cpu(String),
}

impl Gate {
    /// What stands for fields that are not given.
    pub const DEFAULT: Self = Self {
        min_requests: 100,
        max_error_increase_permille: 10,
        max_p99_percent: 150,
        p99_slack_ms: 10,
        max_cpu_increase_percent: 50,
        max_new_failures: 0,
    };

    pub(crate) fn check(&self) -> Result<(), Refusal> {
        let Self {
            min_requests,
            max_error_increase_permille,
            max_p99_percent,
            p99_slack_ms,
            max_cpu_increase_percent,
            max_new_failures,
        } = *self;
        if min_requests < 1 {
            return Err(Refusal::invalid("gate.min_requests", "is below 1"));
        }
        if !(0..=1_000).contains(&max_error_increase_permille) {
            let field = "gate.max_error_increase_permille";
            return Err(Refusal::invalid(field, "is not 0 to 1000"));
        }
        if !(100..=100_000).contains(&max_p99_percent) {
            let reason = "is not 100 to 100000";
            return Err(Refusal::invalid("gate.max_p99_percent", reason));
        }
        for (field, value) in [
            ("gate.p99_slack_ms", p99_slack_ms),
            ("gate.max_cpu_increase_percent", max_cpu_increase_percent),
            ("gate.max_new_failures", max_new_failures),
        ] {
            if value < 0 {
                return Err(Refusal::invalid(field, "is below 0"));
            }
        }
        Ok(())
    }

    /// Compares the batch with the rest: all requests together, and each route by itself.
    pub fn judge(&self, compared: &Comparison) -> GateVerdict {
        let Comparison { batch, rest } = compared;
        let (own, others) = (batch.total(), rest.total());
        let served = own.requests.min(others.requests);
        let enough = |requests: u64| self.min_requests <= count(requests);
        if batch.nodes == 0 || !enough(served) {
            let wanted = self.min_requests;
            return GateVerdict::NoData(format!(
                "{} requests of the batch and {} of the others: the gate needs {wanted} of each",
                own.requests, others.requests
            ));
        }
        let routes = batch.traffic.routes.iter();
        let routes = routes.filter(|(_, route)| enough(route.requests));
        let routes = routes.map(|(name, route)| {
            let same = rest.traffic.routes.get(name);
            let before = same.filter(|same| enough(same.requests));
            (format!("route {name}: "), route, before.unwrap_or(&others))
        });
        let mut sides: Vec<_> = routes.collect();
        sides.push((String::new(), &own, &others));
        let errors = sides
            .iter()
            .find_map(|(of, own, others)| self.errors(of, own, others));
        let failure = errors
            .or_else(|| self.new_reason(&own, &others))
            .or_else(|| {
                let mut all = sides.iter();
                all.find_map(|(of, own, others)| self.latency(of, own, others))
            })
            .or_else(|| self.cpu(batch, rest));
        match failure {
            Some(failure) => GateVerdict::Failed(failure),
            None if batch.silent > 0 => GateVerdict::NoData(format!(
                "{} of {} nodes do not say what they serve",
                batch.silent, batch.nodes
            )),
            None => GateVerdict::Passed,
        }
    }

    fn errors(&self, of: &str, own: &RouteTraffic, others: &RouteTraffic) -> Option<GateFailure> {
        let (own, others) = (error_permille(own), error_permille(others));
        let failed = others + self.max_error_increase_permille < own;
        failed.then(|| {
            GateFailure::Errors(format!(
                "{of}{own} of 1000 requests end with 5xx, {others} of 1000 on the others"
            ))
        })
    }

    fn new_reason(&self, own: &RouteTraffic, others: &RouteTraffic) -> Option<GateFailure> {
        let share = own
            .requests
            .saturating_mul(self.max_error_increase_permille.unsigned_abs());
        let of_clients = self.max_new_failures.saturating_add(count(share / 1_000));
        let is_new = |(name, failures): &(&String, &u64)| {
            let known = others.reasons.get(*name).is_some_and(|known| *known > 0);
            let limit = match reason(name) {
                Some(Reason::ClientAborted) => return false,
                Some(reason) if reason.is_client_fault() => of_clients,
                Some(_) | None => self.max_new_failures,
            };
            !known && limit < count(**failures)
        };
        let (name, failures) = own.reasons.iter().find(is_new)?;
        Some(GateFailure::NewReason(format!(
            "{failures} failures with the reason {name}, which the others do not have"
        )))
    }

    fn latency(&self, of: &str, own: &RouteTraffic, others: &RouteTraffic) -> Option<GateFailure> {
        let (own, others) = (p99_ms(own)?, p99_ms(others)?);
        let share = others.saturating_mul(self.max_p99_percent) / 100;
        let limit = share.saturating_add(self.p99_slack_ms);
        (limit < own).then(|| {
            GateFailure::Latency(format!(
                "{of}99 % of requests take up to {own} ms, {others} ms on the others"
            ))
        })
    }

    fn cpu(&self, batch: &Figures, rest: &Figures) -> Option<GateFailure> {
        let (own, others) = (batch.mean_cpu_percent()?, rest.mean_cpu_percent()?);
        // The bound is of at most 100 000 where it is compared.
        let most = i32::try_from(self.max_cpu_increase_percent).unwrap_or(i32::MAX);
        let failed = others + f64::from(most) < own;
        failed.then(|| {
            GateFailure::Cpu(format!(
                "a node uses {own:.0} % CPU, {others:.0} % on the others"
            ))
        })
    }
}

impl GateFailure {
    /// Whether time would not change it: what happens while caches are cold is not.
    pub fn is_certain(&self) -> bool {
        matches!(self, Self::Errors(_) | Self::NewReason(_))
    }
}

impl fmt::Display for GateFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Errors(text) | Self::NewReason(text) | Self::Latency(text) | Self::Cpu(text) => {
                f.write_str(text)
            }
        }
    }
}

impl Figures {
    /// Adds a node with what it served since `before`, where that was counted in the same run.
    pub fn add(&mut self, cpu_percent: f64, now: Option<Traffic>, before: Option<&Traffic>) {
        self.nodes += 1;
        self.cpu_percent += cpu_percent;
        let Some(now) = now else {
            self.silent += 1;
            return;
        };
        let since = before.and_then(|before| difference(&now, before));
        for (name, route) in since.unwrap_or(now).routes {
            add_route(self.traffic.routes.entry(name).or_default(), &route);
        }
    }

    /// All routes together.
    pub fn total(&self) -> RouteTraffic {
        let mut total = RouteTraffic::default();
        for route in self.traffic.routes.values() {
            add_route(&mut total, route);
        }
        total
    }

    /// CPU of a node; 100 is one core. None without nodes.
    pub fn mean_cpu_percent(&self) -> Option<f64> {
        let nodes = u32::try_from(self.nodes).ok().filter(|nodes| *nodes > 0)?;
        Some(self.cpu_percent / f64::from(nodes))
    }
}

/// 5xx in thousandths of all requests.
pub fn error_permille(route: &RouteTraffic) -> i64 {
    count(route.errors.saturating_mul(1_000) / route.requests.max(1))
}

/// The 99th percentile of latency in milliseconds, by even distribution within its bucket; none without
/// requests.
pub fn p99_ms(route: &RouteTraffic) -> Option<i64> {
    let all: u64 = route
        .latency
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count));
    // Hundredths of a request: the percentile lies at 99 % of all.
    let wanted = all.saturating_mul(99);
    let last = LATENCY_BOUNDS_MS.last().copied().unwrap_or_default();
    let uppers = LATENCY_BOUNDS_MS
        .into_iter()
        .chain([last.saturating_mul(2)]);
    let (mut seen, mut lower) = (0_u64, 0_u64);
    for (upper, in_bucket) in uppers.map(u64::from).zip(route.latency) {
        let here = in_bucket.saturating_mul(100);
        if in_bucket > 0 && wanted <= seen.saturating_add(here) {
            let part = (wanted - seen).saturating_mul(upper - lower) / here;
            return Some(count(lower + part));
        }
        seen = seen.saturating_add(here);
        lower = upper;
    }
    None
}

/// `None` if a counter is less than it was: the counts began anew meanwhile.
fn difference(now: &Traffic, before: &Traffic) -> Option<Traffic> {
    let mut routes = now.routes.clone();
    for (name, old) in &before.routes {
        let route = routes.get_mut(name)?;
        route.requests = route.requests.checked_sub(old.requests)?;
        route.errors = route.errors.checked_sub(old.errors)?;
        for (count, old) in route.latency.iter_mut().zip(old.latency) {
            *count = count.checked_sub(old)?;
        }
        route.reasons = reasons_since(&route.reasons, &old.reasons)?;
    }
    Some(Traffic { routes })
}

fn reasons_since(
    now: &BTreeMap<String, u64>,
    before: &BTreeMap<String, u64>,
) -> Option<BTreeMap<String, u64>> {
    let mut reasons = now.clone();
    for (name, old) in before {
        let count = reasons.get_mut(name)?;
        *count = count.checked_sub(*old)?;
    }
    Some(reasons)
}

/// Counters come from nodes, which may say anything: sums stay at their limit.
fn add_route(sum: &mut RouteTraffic, route: &RouteTraffic) {
    let RouteTraffic {
        requests,
        errors,
        reasons,
        latency,
    } = route;
    sum.requests = sum.requests.saturating_add(*requests);
    sum.errors = sum.errors.saturating_add(*errors);
    for (name, failures) in reasons {
        let total = sum.reasons.entry(name.clone()).or_default();
        *total = total.saturating_add(*failures);
    }
    for (total, count) in sum.latency.iter_mut().zip(latency) {
        *total = total.saturating_add(*count);
    }
}

fn reason(name: &str) -> Option<Reason> {
    let mut all = Reason::ALL.iter();
    all.find(|known| known.as_str() == name).copied()
}

fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
