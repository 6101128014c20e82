//! Samples of workers.

use crate::limit_use::LimitSetting;
use crate::scrape::Scrape;
use crate::scrape::samples::Samples;
use crate::vocabulary::Protocol;
use proxy_errors::LimitType;

pub(crate) fn requests_in_flight(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.requests_in_flight);
}

pub(crate) fn tunnels(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.tunnels);
}

pub(crate) fn requests_queued(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.requests_queued);
}

pub(crate) fn requests_of_former_configurations(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let workers = &scrape.snapshot.workers;
    samples.count(&[], workers.requests_of_former_configurations);
}

pub(crate) fn rate_limits_observed(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.rate_limits_observed);
}

pub(crate) fn connections_open(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let workers = &scrape.snapshot.workers;
    samples.count(&[], workers.connections_active + workers.connections_idle);
}

pub(crate) fn connections_active(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.connections_active);
}

pub(crate) fn connections_idle(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.connections_idle);
}

pub(crate) fn connections_accepted(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.connections_accepted);
}

pub(crate) fn handshakes(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let workers = &scrape.snapshot.workers;
    samples.count(&["completed"], workers.handshakes_completed);
    samples.count(&["failed"], workers.handshakes_failed);
}

pub(crate) fn proxy_headers_failed(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.proxy_headers_failed);
}

pub(crate) fn protocols(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let counts = scrape.snapshot.workers.protocols;
    for (protocol, count) in Protocol::ALL.into_iter().zip(counts) {
        samples.count(&[protocol.name()], count);
    }
}

pub(crate) fn errors(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let words = scrape.snapshot.reasons.iter().chain(&["other"]);
    for (reason, count) in words.zip(&scrape.snapshot.workers.failures) {
        samples.count(&[reason], *count);
    }
}

pub(crate) fn blocked(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let words = scrape.snapshot.reasons.iter().chain(&["other"]);
    for (reason, count) in words.zip(&scrape.snapshot.workers.blocked) {
        samples.count_met(&[reason], *count);
    }
}

pub(crate) fn limits(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for limit in LimitType::ALL {
        samples.count(&[limit.as_str()], scrape.snapshot.workers.limit(limit));
    }
}

pub(crate) fn limit_rejections(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for setting in LimitSetting::ALL {
        let count = scrape.snapshot.workers.rejected(*setting);
        samples.count(&[setting.name()], count);
    }
}

pub(crate) fn limit_uses(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for used in &scrape.snapshot.limits {
        if let Some(current) = used.current {
            samples.quantity(&[used.setting.name()], current);
        }
    }
}

pub(crate) fn limit_maxima(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for used in &scrape.snapshot.limits {
        if let Some(maximum) = used.maximum {
            samples.quantity(&[used.setting.name()], maximum);
        }
    }
}

pub(crate) fn header_size_exceeded(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.limit(LimitType::HeaderSize));
}

pub(crate) fn body_size_exceeded(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.limit(LimitType::BodySize));
}

pub(crate) fn connection_limit_reached(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(
        &[],
        scrape.snapshot.workers.limit(LimitType::ConnectionCount),
    );
}

pub(crate) fn rate_limit_exceeded(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.workers.limit(LimitType::RequestRate));
}
