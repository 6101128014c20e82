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

use crate::rollout::figures::Comparison;
use crate::rollout::served::count;
use crate::rollout::weighing::Trim;
use scans::{Scan, without_scan};
pub use settings::Gate;
use sides::ComparedReports;
use std::fmt::Write as _;
pub use verdict::{GateFailure, GateVerdict};

/// Maximum number of routes without a verdict that a sentence names.
const MAX_NAMED_ROUTES: usize = 5;

impl Gate {
    /// Compares the batch with the rest: all requests together, each route, and each node.
    pub fn judge(&self, compared: &Comparison) -> GateVerdict {
        let (compared, _) = without_scan(compared, self.min_requests);
        self.judge_served(&compared)
    }

    fn judge_served(&self, compared: &Comparison) -> GateVerdict {
        let Comparison { batch, rest } = compared;
        let (own, others) = (batch.weigh(Trim::Lowest), rest.weigh(Trim::BothEnds));
        let served = own.requests.min(others.requests);
        if batch.nodes == 0 || count(served) < self.min_requests {
            let wanted = self.min_requests;
            return GateVerdict::NoData(format!(
                "{} requests of the batch and {} of the others: the gate needs {wanted} of each",
                own.requests, others.requests
            ));
        }
        let sides = ComparedReports::new(compared, self.min_requests);
        match self.failure(compared, &sides) {
            Some(failure) => GateVerdict::Failed(failure),
            None if batch.silent > 0 => GateVerdict::NoData(format!(
                "{} of {} nodes do not say what they serve",
                batch.silent, batch.nodes
            )),
            None => nodes::idle(self, batch).map_or(GateVerdict::Passed, GateVerdict::NoData),
        }
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
        let own = compared.batch.weigh(Trim::Lowest).requests;
        let others = compared.rest.weigh(Trim::BothEnds).requests;
        let (compared, scan) = without_scan(compared, self.min_requests);
        let compared = &*compared;
        let mut text = match self.judge_served(compared) {
            GateVerdict::Passed => match self.suspicion_of_served(compared) {
                Some(suspected) => format!("too few requests to be sure: {suspected}"),
                None => format!(
                    "nothing is worse among {own} requests of the batch and {others} of the others"
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
        let unjudged = ComparedReports::new(compared, self.min_requests).unjudged();
        for (name, requests) in unjudged.iter().take(MAX_NAMED_ROUTES) {
            write!(
                text,
                "; too few requests on route {name}: not judged ({requests} of {})",
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
        let limit = others + f64::from(most);
        (limit < own).then(|| {
            GateFailure::Cpu(format!(
                "a node uses {own:.0} % CPU, {others:.0} % on the others; up to {limit:.0} % pass"
            ))
        })
    }
}
