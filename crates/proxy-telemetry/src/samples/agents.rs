//! Samples of agents.

use crate::metrics::HistogramTotal;
use crate::scrape::Scrape;
use crate::scrape::samples::Samples;
use crate::vocabulary::AgentDecision;
use agent_protocol::EventKind;

pub(crate) fn requests(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (agent, total) in &scrape.snapshot.agents {
        for (event, counts) in EventKind::ALL.into_iter().zip(&total.events) {
            for (decision, count) in AgentDecision::ALL.into_iter().zip(counts.decisions) {
                samples.count_met(&[agent, event.name(), decision.name()], count);
            }
        }
    }
}

pub(crate) fn durations(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (agent, total) in &scrape.snapshot.agents {
        for (event, counts) in EventKind::ALL.into_iter().zip(&total.events) {
            if counts.duration != HistogramTotal::default() {
                samples.histogram(&[agent, event.name()], &counts.duration, None);
            }
        }
    }
}

pub(crate) fn timeouts(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (agent, total) in &scrape.snapshot.agents {
        for (event, counts) in EventKind::ALL.into_iter().zip(&total.events) {
            samples.count_met(&[agent, event.name()], counts.timeouts);
        }
    }
}

pub(crate) fn failures(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (agent, total) in &scrape.snapshot.agents {
        for (reason, count) in scrape.snapshot.by_reason(&total.failures) {
            samples.count(&[agent, reason], count);
        }
    }
}

pub(crate) fn queue_depth(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (agent, total) in &scrape.snapshot.agents {
        samples.count(&[agent], total.queue_depth);
    }
}
