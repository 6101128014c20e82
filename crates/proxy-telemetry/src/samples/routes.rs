//! Samples of routes.

use crate::metrics::RouteTotal;
use crate::scrape::Scrape;
use crate::scrape::samples::Samples;

pub(crate) fn requests(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (route, total) in &scrape.snapshot.routes {
        for (status, count) in total.by_status() {
            samples.count(&[route, itoa::Buffer::new().format(status)], count);
        }
        samples.count_met(&[route, "other"], total.other_statuses());
    }
}

pub(crate) fn durations(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    for (route, total) in &scrape.snapshot.routes {
        let exemplars = scrape.snapshot.exemplars.route(route);
        samples.histogram(&[route], &total.duration, exemplars);
    }
}

pub(crate) fn failures(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.failed);
}

pub(crate) fn aborts(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.aborted);
}

pub(crate) fn bytes_in(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.bytes_in);
}

pub(crate) fn bytes_out(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    each(scrape, samples, |total| total.bytes_out);
}

fn each(scrape: &Scrape<'_>, samples: &mut Samples<'_>, number: fn(&RouteTotal) -> u64) {
    for (route, total) in &scrape.snapshot.routes {
        samples.count(&[route], number(total));
    }
}
