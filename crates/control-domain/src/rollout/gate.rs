//! The gate after each batch: compares switched nodes with the rest. A batch without data does not
//! pass.

mod answers;
mod latency;
mod mix;
mod nodes;
mod pool;
mod scans;
mod settings;
mod sides;
mod significance;
mod size;
mod verdict;

use crate::rollout::figures::{Comparison, Figures, all_requests};
use crate::rollout::served::count;
use crate::rollout::weighing::Trim;
use pool::{ExcludedNode, float, least_pooled, means_without_each};
use scans::{Scan, without_scan};
pub use settings::Gate;
use sides::ComparedReports;
use std::fmt::Write as _;
pub use verdict::{GateFailure, GateVerdict};

/// Maximum number of routes without a verdict that a sentence names.
const MAX_NAMED_ROUTES: usize = 5;

/// Factor by which a node of the batch serves more than all unswitched nodes if those are idle.
const IDLE_REST_FACTOR: f64 = 4.0;

impl Gate {
    /// Compares the batch with the rest: all requests together, each route, and each node.
    pub fn judge(&self, compared: &Comparison) -> GateVerdict {
        let (compared, _) = without_scan(compared, self.min_requests);
        self.judge_served(&compared)
    }

    fn judge_served(&self, compared: &Comparison) -> GateVerdict {
        let batch = &compared.batch;
        let sides = ComparedReports::new(compared, self.min_requests);
        let (own, others) = sides.counted();
        if batch.nodes == 0 || !sides.is_enough(own.min(others)) {
            let wanted = self.min_requests;
            return GateVerdict::NoData(format!(
                "{own:.0} requests of the batch and {others:.0} of the others count: the gate needs {wanted} of each"
            ));
        }
        match self.failure(compared, &sides) {
            Some(failure) => GateVerdict::Failed(failure),
            None if batch.silent > 0 => GateVerdict::NoData(format!(
                "{} of {} nodes report no traffic",
                batch.silent, batch.nodes
            )),
            None => nodes::idle(self, batch).map_or(GateVerdict::Passed, GateVerdict::NoData),
        }
    }

    /// Returns true if the unswitched nodes serve so little beside a batch with enough requests that
    /// they are no baseline, such as standbys.
    pub fn has_idle_rest(&self, batch: &Figures, rest: &Figures) -> bool {
        let own = batch.mean_requests();
        let requests = rest.reports.iter().map(all_requests);
        let others = least_pooled(requests, ExcludedNode::BothEnds);
        rest.nodes > 0
            && self.min_requests <= count(own)
            && others < float(u64::try_from(self.min_requests).unwrap_or_default())
            && others * IDLE_REST_FACTOR < float(own)
    }

    /// A large difference with half of the evidence that a verdict needs: the gate waits for more
    /// requests. Call it only for a batch that would pass.
    pub fn suspicion(&self, compared: &Comparison) -> Option<GateFailure> {
        let (compared, _) = without_scan(compared, self.min_requests);
        self.suspicion_of_served(&compared)
    }

    fn suspicion_of_served(&self, compared: &Comparison) -> Option<GateFailure> {
        let sides = ComparedReports::new(compared, self.min_requests).suspecting();
        self.failure(compared, &sides)
    }

    fn failure(&self, compared: &Comparison, sides: &ComparedReports<'_>) -> Option<GateFailure> {
        answers::errors(self, sides)
            .or_else(|| answers::reasons(self, sides))
            .or_else(|| answers::statuses(self, sides))
            .or_else(|| mix::handshakes(sides))
            .or_else(|| mix::routes(self, sides))
            .or_else(|| latency::latency(self, sides))
            .or_else(|| size::sizes(sides))
            .or_else(|| self.cpu(compared))
            .or_else(|| nodes::worse(self, compared, sides.needed))
    }

    /// The verdict in one sentence, with the number of requests and the routes without a verdict.
    pub fn explain(&self, compared: &Comparison) -> String {
        let (compared, scan) = without_scan(compared, self.min_requests);
        let compared = &*compared;
        let sides = ComparedReports::new(compared, self.min_requests);
        let (own, others) = sides.counted();
        let mut text = match self.judge_served(compared) {
            GateVerdict::Passed => match self.suspicion_of_served(compared) {
                Some(suspected) => format!("too few requests to be sure: {suspected}"),
                None => format!(
                    "nothing is worse among {own:.0} requests of the batch and {others:.0} of the others"
                ),
            },
            GateVerdict::Failed(failure) => failure.to_string(),
            GateVerdict::NoData(why) => return format!("too little data: {why}"),
        };
        if let Some(Scan { route, requests }) = scan {
            write!(
                text,
                "; {requests} requests on route {route} were answered 404 in addition to as many others as \
                 usual: not judged"
            )
            .unwrap_or_default();
        }
        let unjudged = sides.unjudged();
        for (name, requests) in unjudged.iter().take(MAX_NAMED_ROUTES) {
            write!(
                text,
                "; too few requests on route {name}: not judged ({requests:.0} of {})",
                self.min_requests
            )
            .unwrap_or_default();
        }
        if let Some(more) = unjudged.len().checked_sub(MAX_NAMED_ROUTES)
            && more > 0
        {
            write!(text, "; {more} more routes are not judged").unwrap_or_default();
        }
        text
    }

    fn cpu(&self, compared: &Comparison) -> Option<GateFailure> {
        let own = compared.batch.mean_cpu_percent(Trim::Lowest)?;
        let others = compared.rest.mean_cpu_percent(Trim::BothEnds)?;
        // Limited to 100 000, so the conversion succeeds.
        let most = i32::try_from(self.max_cpu_increase_percent).unwrap_or(i32::MAX);
        let limit = |before: f64| others.max(before) + f64::from(most);
        if own <= limit(others) {
            return None;
        }
        let nodes = compared.batch.cpu_percents();
        let nodes = nodes.map(|(now, before)| (now, before.unwrap_or(others)));
        let nodes: Vec<(f64, f64)> = nodes.collect();
        let mut sides = means_without_each(&nodes).map(|(now, before)| (now, limit(before)));
        let limit = sides.find_map(|(own, limit)| (limit < own).then_some(limit))?;
        Some(GateFailure::Cpu(format!(
            "a node uses {own:.0} % CPU, {others:.0} % on the others; up to {limit:.0} % pass"
        )))
    }
}
