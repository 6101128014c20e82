//! Samples of the process.

use crate::scrape::samples::Samples;
use crate::scrape::{Build, Scrape};

pub(crate) fn resident_bytes(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    if let Some(bytes) = scrape.process.resident_bytes {
        samples.count(&[], bytes);
    }
}

pub(crate) fn open_fds(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    if let Some(count) = scrape.process.open_fds {
        samples.count(&[], count);
    }
}

pub(crate) fn cpu(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    if let Some(time) = scrape.process.cpu {
        samples.seconds(time);
    }
}

pub(crate) fn start_time(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.seconds(scrape.started);
}

pub(crate) fn uptime(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.seconds(scrape.uptime);
}

pub(crate) fn build_info(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    let Build { version, commit } = scrape.build;
    samples.count(&[version, commit], 1);
}

pub(crate) fn series_dropped(scrape: &Scrape<'_>, samples: &mut Samples<'_>) {
    samples.count(&[], scrape.snapshot.series_dropped);
}
