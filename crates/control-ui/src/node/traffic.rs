//! Traffic of nodes as short figures.

use crate::view::phrase::number;
use control_domain::{CountedRequests, p99_ms};
use control_wire::{RouteTraffic, Traffic};

/// Formatted figures; a missing figure is empty, never zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Served {
    pub(crate) requests: String,
    /// Share of 5xx, in percent.
    pub(crate) errors: String,
    pub(crate) p99: String,
}

/// Traffic of one route.
#[derive(Clone, Debug)]
pub(crate) struct RouteRow {
    pub(crate) name: String,
    pub(crate) served: Served,
    /// The most frequent reason of failures.
    pub(crate) reason: String,
}

impl From<&RouteTraffic> for Served {
    fn from(route: &RouteTraffic) -> Self {
        let requests = i64::try_from(route.requests).unwrap_or(i64::MAX);
        let errors = route.errors.min(route.requests);
        Self {
            requests: number(requests),
            errors: percent(errors, route.requests),
            p99: p99_ms(route).map_or_else(String::new, |ms| format!("{} ms", number(ms))),
        }
    }
}

impl From<&CountedRequests> for Served {
    fn from(counted: &CountedRequests) -> Self {
        let CountedRequests {
            requests,
            errors,
            latency,
        } = *counted;
        Self::from(&RouteTraffic {
            requests,
            errors,
            latency,
            ..RouteTraffic::default()
        })
    }
}

/// Routes of a node, most requests first.
pub(crate) fn routes(traffic: Option<&Traffic>) -> Vec<RouteRow> {
    let Some(traffic) = traffic else {
        return Vec::new();
    };
    let mut routes: Vec<(&String, &RouteTraffic)> = traffic.routes.iter().collect();
    routes.sort_by_key(|(_, route)| std::cmp::Reverse(route.requests));
    let rows = routes.into_iter().map(|(name, route)| {
        let reason = route.reasons.iter().max_by_key(|(_, count)| **count);
        RouteRow {
            name: name.clone(),
            served: Served::from(route),
            reason: reason.map(|(name, _)| name.clone()).unwrap_or_default(),
        }
    });
    rows.collect()
}

/// Percentage such as `0.24 %`; empty without requests.
fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return String::new();
    }
    let hundredths = u128::from(part) * 10_000 / u128::from(whole);
    format!("{}.{:02} %", hundredths / 100, hundredths % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_empty_and_never_zero() {
        let idle = Served::from(&RouteTraffic::default());
        assert_eq!((idle.requests.as_str(), idle.errors.as_str()), ("0", ""));
    }

    #[test]
    fn routes_with_most_requests_come_first() {
        let route = |requests, errors| RouteTraffic {
            requests,
            errors,
            latency: [0, 0, requests, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            ..RouteTraffic::default()
        };
        let routes = [("a", route(10, 0)), ("b", route(9_990, 24))];
        let routes = routes.map(|(name, route)| (name.to_owned(), route));
        let traffic = Traffic {
            routes: routes.into(),
            connections: None,
        };
        let first = &super::routes(Some(&traffic))[0];
        assert_eq!(first.name, "b");
        assert_eq!(first.served.requests, "9990");
        assert_eq!(first.served.errors, "0.24 %");
        assert_eq!(first.served.p99, "4 ms");
    }
}
