//! Error share and latency of the requests of one node or route.

use control_wire::{LATENCY_BOUNDS_MS, RouteTraffic};

/// Answered requests and errors of one node or route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Requests that were answered.
    pub requests: u64,
    /// Responses with a status of 500 or more.
    pub errors: u64,
}

impl From<&RouteTraffic> for Served {
    fn from(route: &RouteTraffic) -> Self {
        Self {
            requests: route.requests,
            errors: route.errors,
        }
    }
}

/// 5xx in thousandths of all requests, clamped to 1 000 because nodes may report any value.
pub(crate) fn error_permille(served: impl Into<Served>) -> i64 {
    count(error_ppm(served) / 1_000)
}

/// 5xx in millionths of all requests, clamped to a million.
pub(crate) fn error_ppm(served: impl Into<Served>) -> u64 {
    let Served { requests, errors } = served.into();
    let (errors, requests) = (u128::from(errors.min(requests)), u128::from(requests));
    let ppm = errors * 1_000_000 / requests.max(1);
    u64::try_from(ppm).unwrap_or(u64::MAX)
}

/// The 99th percentile of latency in milliseconds, interpolated within its bucket; `None` without
/// requests.
pub fn p99_ms(route: &RouteTraffic) -> Option<i64> {
    percentile_ms(route, 99)
}

pub(crate) fn percentile_ms(route: &RouteTraffic, percent: u64) -> Option<i64> {
    let all: u64 = route
        .latency
        .iter()
        .fold(0, |sum, count| sum.saturating_add(*count));
    // In hundredths of a request.
    let wanted = all.saturating_mul(percent);
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

pub(crate) fn count(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
