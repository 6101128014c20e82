//! Risks of requests that nodes send without a client's request: live tests, and health checks of
//! new upstreams.

use super::class::RiskClass;
use super::{Compared, Risk};
use proxy_model::{ConfigTest, Model, TestRequest, is_secret_name};

/// The risks of live tests that are new or differ, and of new upstreams with a health check.
pub(super) fn sent_request_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let mut risks = live_test_risks(compared.before, compared.after);
    let is_new = |name: &str| !compared.before.upstreams.iter().any(|one| one.name == name);
    let upstreams = compared.after.upstreams.iter();
    let checked = upstreams.filter(|one| one.health_check.is_some() && is_new(&one.name));
    risks.extend(checked.map(|upstream| Risk {
        class: RiskClass::Unlisted,
        subject: format!("upstream {}", upstream.name),
        change: "is new, and its health check sends requests to its targets".to_owned(),
    }));
    risks
}

/// Risks of new live tests. Each test before matches one test after at most: a copy is a further
/// request.
fn live_test_risks(before: &Model, after: &Model) -> Vec<Risk> {
    let mut known: Vec<&ConfigTest> = live_tests(before).collect();
    let new: Vec<&ConfigTest> = live_tests(after)
        .filter(|test| {
            let same = known.iter().position(|one| is_same(one, test));
            same.map(|at| known.swap_remove(at)).is_none()
        })
        .collect();
    new.into_iter().map(live_test_risk).collect()
}

fn live_test_risk(test: &ConfigTest) -> Risk {
    let sent = format!("every node sends {}", shown(&test.request));
    let (class, change) = match danger(&test.request) {
        Some(danger) => (RiskClass::UnsafeLiveTest, format!("{sent}: {danger}")),
        None => (RiskClass::Unlisted, sent),
    };
    Risk {
        class,
        subject: format!("live test {}", test.name),
        change,
    }
}

fn live_tests(model: &Model) -> impl Iterator<Item = &ConfigTest> {
    model.tests.iter().filter(|test| test.live.is_some())
}

/// Returns true if both send the same request and expect the same answer; names may differ.
fn is_same(old: &ConfigTest, new: &ConfigTest) -> bool {
    let expected = |test: &ConfigTest| -> Vec<_> {
        let expectations = test.expectations.iter();
        expectations.map(|one| one.value.clone()).collect()
    };
    old.live == new.live
        && line(&old.request) == line(&new.request)
        && expected(old) == expected(new)
}

/// The parts of a request that are sent, or that choose its listener.
fn line(request: &TestRequest) -> impl PartialEq + use<> {
    let TestRequest {
        place: _,
        method,
        url,
        headers,
        listener,
        client_ip,
        claims,
    } = request.clone();
    (method, url, headers, listener, client_ip, claims)
}

/// The reason why a request may do more than read public data; `None` for a harmless one.
fn danger(request: &TestRequest) -> Option<String> {
    if !request.has_safe_method() {
        return Some(format!("`{}` may change data", request.method));
    }
    let headers = request.headers.iter().map(|(name, _)| name.as_str());
    let secret = headers.chain(query_names(&request.url));
    let mut secret = secret.filter(|name| is_secret_name(&name.to_ascii_lowercase()));
    let first = secret.next()?;
    Some(format!("`{first}` may be a credential"))
}

fn query_names(url: &str) -> impl Iterator<Item = &str> {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let pairs = query.split('&');
    pairs.map(|pair| pair.split_once('=').map_or(pair, |(name, _)| name))
}

/// Method and URL without its query, which may hold a secret.
fn shown(request: &TestRequest) -> String {
    let url = request.url.split('?').next().unwrap_or_default();
    format!("`{} {url}`", request.method)
}
