//! The gate after each batch: a comparison of the switched nodes with the rest. No data is a no.

use crate::figures::{Figures, NodeFigures};
use crate::refusal::Refusal;
use crate::served::{count, error_permille};
use crate::weighing::{Trim, Weighed};
use proxy_errors::Reason;
use std::fmt;

/// A single node may be so many times worse than the whole batch: it serves fewer requests, and clients that are
/// few.
const NODE_ERROR_FACTOR: i64 = 10;
/// A node above this growth of its 5xx is worse in any case.
const MAX_NODE_ERROR_INCREASE_PERMILLE: i64 = 500;
/// A single node may use so many times more CPU than the mean of a batch may grow.
const NODE_CPU_FACTOR: i64 = 2;
/// A node that serves less than this part of the batch's mean does not serve.
const IDLE_SHARE: u64 = 20;
/// Unless it served less than this part of the mean before as well.
const BUSY_SHARE: u64 = 4;

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
        let (own, others) = (batch.weigh(Trim::Lowest), rest.weigh(Trim::BothEnds));
        let served = own.requests.min(others.requests);
        let enough = |requests: u64| self.min_requests <= count(requests);
        if batch.nodes == 0 || !enough(served) {
            let wanted = self.min_requests;
            return GateVerdict::NoData(format!(
                "{} requests of the batch and {} of the others: the gate needs {wanted} of each",
                own.requests, others.requests
            ));
        }
        let routes = batch.routes(Trim::Lowest);
        let routes = routes.filter(|(_, route)| enough(route.requests));
        let routes = routes.map(|(name, route)| {
            let same = rest.standard(name);
            let before = same.filter(|same| enough(same.requests));
            (format!("route {name}: "), route, before.unwrap_or(others))
        });
        let mut sides: Vec<_> = routes.collect();
        sides.push((String::new(), own, others));
        let errors = sides
            .iter()
            .find_map(|(of, own, others)| self.errors(of, own, others));
        let failure = errors
            .or_else(|| self.new_reason(batch, rest))
            .or_else(|| {
                let mut all = sides.iter();
                all.find_map(|(of, own, others)| self.latency(of, own, others))
            })
            .or_else(|| self.cpu(batch, rest))
            .or_else(|| {
                let mut nodes = batch.each.iter();
                nodes.find_map(|node| self.node(node, others, rest))
            });
        match failure {
            Some(failure) => GateVerdict::Failed(failure),
            None if batch.silent > 0 => GateVerdict::NoData(format!(
                "{} of {} nodes do not say what they serve",
                batch.silent, batch.nodes
            )),
            None => self
                .idle(batch)
                .map_or(GateVerdict::Passed, GateVerdict::NoData),
        }
    }

    /// One node beside the rest: what a single node does wrong is lost in the figures of a large batch.
    fn node(&self, node: &NodeFigures, others: Weighed, rest: &Figures) -> Option<GateFailure> {
        let of = format!("node {}: ", node.node);
        let is_enough = self.min_requests <= count(node.served.requests);
        let allowed = self.max_error_increase_permille;
        let limit = allowed
            .saturating_mul(NODE_ERROR_FACTOR)
            .min(MAX_NODE_ERROR_INCREASE_PERMILLE)
            .max(allowed);
        let (errors, usual) = (error_permille(node.served), others.error_permille);
        if is_enough && usual + limit < errors {
            return Some(GateFailure::Errors(format!(
                "{of}{errors} of 1000 requests end with 5xx, {usual} of 1000 on the others"
            )));
        }
        let slow = node.median_ms.zip(self.latency_limit(others));
        if let Some((median, limit)) = slow
            && is_enough
            && limit < median
        {
            return Some(GateFailure::Latency(format!(
                "{of}half of its requests take {median} ms or more, 99 % may take {limit} ms"
            )));
        }
        let before = node.before.map_or(0.0, |before| before.cpu_percent);
        let usual = rest.mean_cpu_percent(Trim::BothEnds)?.max(before);
        let more = self
            .max_cpu_increase_percent
            .saturating_mul(NODE_CPU_FACTOR);
        let failed = usual + f64::from(i32::try_from(more).unwrap_or(i32::MAX)) < node.cpu_percent;
        failed.then(|| {
            GateFailure::Cpu(format!(
                "{of}it uses {:.0} % CPU, {usual:.0} % before and on the others",
                node.cpu_percent
            ))
        })
    }

    /// A node that served as the rest do, and next to nothing since its switch, says nothing of the bundle.
    fn idle(&self, batch: &Figures) -> Option<String> {
        let nodes = u64::try_from(batch.nodes).ok().filter(|nodes| *nodes > 0)?;
        let mean = batch.weigh(Trim::Lowest).requests / nodes;
        if count(mean) < self.min_requests {
            return None;
        }
        let before = |node: &NodeFigures| node.before.map_or(0, |before| before.requests);
        let usual = batch.mean_requests_before();
        let was_busy = |node: &NodeFigures| {
            let own = before(node);
            own > 0 && usual <= own.saturating_mul(BUSY_SHARE)
        };
        let idle = |node: &&NodeFigures| {
            was_busy(node) && node.served.requests.saturating_mul(IDLE_SHARE) < mean
        };
        let node = batch.each.iter().find(idle)?;
        Some(format!(
            "node {} serves {} requests, a node of the batch {mean}",
            node.node, node.served.requests
        ))
    }

    fn errors(&self, of: &str, own: &Weighed, others: &Weighed) -> Option<GateFailure> {
        let (own, others) = (own.error_permille, others.error_permille);
        let failed = others + self.max_error_increase_permille < own;
        failed.then(|| {
            GateFailure::Errors(format!(
                "{of}{own} of 1000 requests end with 5xx, {others} of 1000 on the others"
            ))
        })
    }

    fn new_reason(&self, batch: &Figures, rest: &Figures) -> Option<GateFailure> {
        let own = batch.weigh(Trim::Lowest);
        let share = own
            .requests
            .saturating_mul(self.max_error_increase_permille.unsigned_abs());
        let of_clients = self.max_new_failures.saturating_add(count(share / 1_000));
        let is_new = |(name, failures): &(&str, u64)| {
            let limit = match reason(name) {
                Some(Reason::ClientAborted) => return false,
                Some(reason) if reason.is_client_fault() => of_clients,
                Some(_) | None => self.max_new_failures,
            };
            limit < count(*failures) && !rest.knows_reason(name)
        };
        let (name, failures) = batch.failures().find(is_new)?;
        Some(GateFailure::NewReason(format!(
            "{failures} failures with the reason {name}, which the others do not have"
        )))
    }

    fn latency(&self, of: &str, own: &Weighed, others: &Weighed) -> Option<GateFailure> {
        let limit = self.latency_limit(*others)?;
        let (own, others) = (own.p99_ms?, others.p99_ms?);
        (limit < own).then(|| {
            GateFailure::Latency(format!(
                "{of}99 % of requests take up to {own} ms, {others} ms on the others"
            ))
        })
    }

    /// The highest p99 that passes, in milliseconds.
    fn latency_limit(&self, others: Weighed) -> Option<i64> {
        let share = others.p99_ms?.saturating_mul(self.max_p99_percent) / 100;
        Some(share.saturating_add(self.p99_slack_ms))
    }

    fn cpu(&self, batch: &Figures, rest: &Figures) -> Option<GateFailure> {
        let own = batch.mean_cpu_percent(Trim::Lowest)?;
        let others = rest.mean_cpu_percent(Trim::BothEnds)?;
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

fn reason(name: &str) -> Option<Reason> {
    let mut all = Reason::ALL.iter();
    all.find(|known| known.as_str() == name).copied()
}
