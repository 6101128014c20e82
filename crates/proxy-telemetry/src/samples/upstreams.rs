//! Samples of upstreams and their targets.

use crate::metrics::{TargetTotal, UpstreamTotal};
use crate::scrape::Scrape;
use crate::scrape::samples::Samples;

pub(crate) fn attempts(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.attempts);
}

pub(crate) fn retries(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.retries);
}

pub(crate) fn retries_refused(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.retries_refused);
}

pub(crate) fn pool_size(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.pool_size);
}

pub(crate) fn pool_idle(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.pool_idle);
}

pub(crate) fn pool_stale(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.pool_stale);
}

pub(crate) fn failures(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (upstream, total) in &scrape.snapshot.upstreams {
        for (reason, count) in scrape.snapshot.by_reason(&total.failures) {
            samples.count(&[upstream, reason], count);
        }
    }
}

pub(crate) fn durations(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (upstream, total) in &scrape.snapshot.upstreams {
        samples.histogram(&[upstream], &total.duration, None);
    }
}

pub(crate) fn target_requests(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each_target(scrape, samples, |total| total.requests);
}

pub(crate) fn target_failures(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each_target(scrape, samples, |total| total.failures);
}

pub(crate) fn target_active(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each_target(scrape, samples, |total| total.active);
}

fn each(scrape: &Scrape<'_>, samples: &mut Samples<'_>, number: fn(&UpstreamTotal) -> u64) {
    for (upstream, total) in &scrape.snapshot.upstreams {
        samples.count(&[upstream], number(total));
    }
}

fn each_target(scrape: &Scrape<'_>, samples: &mut Samples<'_>, number: fn(&TargetTotal) -> u64) {
    for (target, total) in &scrape.snapshot.targets {
        samples.count(&[&target.upstream, &target.address], number(total));
    }
}
