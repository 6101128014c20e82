//! Links to a Prometheus server that scrapes the nodes, for the displayed figures.

use control_domain::TrafficPeriod;
use form_urlencoded::Serializer;

/// A `PromQL` query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MetricQuery {
    pub(crate) name: &'static str,
    pub(crate) text: String,
    /// Link to the server's graph; `None` without a server.
    pub(crate) href: Option<String>,
}

/// Queries for requests, share of 5xx and p99 by route over a period. `server` is the base URL of
/// the Prometheus server.
pub(crate) fn queries(period: TrafficPeriod, server: Option<&str>) -> Vec<MetricQuery> {
    let range = match period {
        TrafficPeriod::Hour => "1h",
        TrafficPeriod::Day => "24h",
        TrafficPeriod::Week => "7d",
    };
    let requests = format!("sum by (route) (increase(proxy_requests_total[{range}]))");
    let errors = format!(
        "sum by (route) (increase(proxy_requests_total{{status=~\"5..\"}}[{range}])) / {requests}"
    );
    let p99 = format!(
        "histogram_quantile(0.99, sum by (route, le) (increase(proxy_request_duration_seconds_bucket[{range}])))"
    );
    let all = [
        ("Requests by route", requests),
        ("Share of 5xx by route", errors),
        ("99th percentile by route, in seconds", p99),
    ];
    let queries = all.map(|(name, text)| MetricQuery {
        name,
        href: server.and_then(|server| graph(server, &text, range)),
        text,
    });
    queries.into()
}

/// Link to a query's graph: Prometheus 2 shows it, Prometheus 3 redirects it. Only for `http` and
/// `https`, because an operator entered the address.
fn graph(server: &str, query: &str, range: &str) -> Option<String> {
    let is_web = ["https://", "http://"]
        .iter()
        .any(|scheme| server.starts_with(scheme));
    let mut parameters = Serializer::new(String::new());
    parameters
        .append_pair("g0.expr", query)
        .append_pair("g0.tab", "0")
        .append_pair("g0.range_input", range);
    let server = server.trim_end_matches('/');
    is_web.then(|| format!("{server}/graph?{}", parameters.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_have_the_length_of_the_period() {
        let all = queries(TrafficPeriod::Week, None);
        assert!(all.iter().all(|query| query.text.contains("[7d]")));
        assert!(all.iter().all(|query| query.href.is_none()));
    }

    #[test]
    fn a_query_is_linked_to_a_web_server_alone() {
        let first = |server| queries(TrafficPeriod::Hour, Some(server)).remove(0).href;
        let expected = "https://metrics.example.com/prometheus/graph?g0.expr=sum+by+%28route%29+%28increase%28\
                        proxy_requests_total%5B1h%5D%29%29&g0.tab=0&g0.range_input=1h";
        for server in [
            "https://metrics.example.com/prometheus",
            "https://metrics.example.com/prometheus/",
        ] {
            assert_eq!(first(server).as_deref(), Some(expected));
        }
        assert_eq!(first("javascript:alert(1)"), None);
        assert_eq!(first("metrics.example.com"), None);
    }
}
