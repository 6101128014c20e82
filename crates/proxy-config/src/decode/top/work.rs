//! Bounds on the work that follows from a configuration: it must not grow with the product of two
//! lists.

use super::super::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::{ConfigTest, Model, Route};

/// Maximum number of entries in the routers' index, one for each pair of a host and a path of a
/// route.
const MAX_PAIRS: usize = 500_000;
/// Maximum work of all tests: in the worst case a test compares its request with every route, also
/// by regular expressions, which read the whole path.
const MAX_TEST_BYTES: usize = 1_000_000_000;
/// Maximum number of live tests: each is a request that a node sends between its switch and its
/// verdict.
const MAX_LIVE_TESTS: usize = 32;
/// Work of comparing a request with one route, independent of the request's length, in bytes.
const COMPARISON_BYTES: usize = 64;

/// Reports the first route and the first test beyond the bounds.
pub(super) fn check(d: &mut Decoder<'_, '_>, model: &Model) {
    if let Some(route) = beyond(&model.routes, MAX_PAIRS, pairs) {
        let message = "the hosts and paths up to here make too many pairs";
        let fault = Diagnostic::new(DiagnosticCode::TooManyConditions, route.place, message);
        let fault = fault.label(format!("more than {MAX_PAIRS} with this route"));
        d.push(fault.help("a route with 100 hosts and 100 paths has 10 000 pairs: split it"));
    }
    let routes = model.routes.len().max(1);
    let work = |test: &ConfigTest| routes.saturating_mul(request_bytes(test));
    if let Some(test) = beyond(&model.tests, MAX_TEST_BYTES, work) {
        let message = "the tests up to here take too long";
        let fault = Diagnostic::new(DiagnosticCode::TooManyTests, test.place, message);
        let most = MAX_TEST_BYTES / routes / (2 * COMPARISON_BYTES);
        let fault = fault.label(format!("each is compared with {routes} routes"));
        d.push(fault.help(format!("about {most} short requests can be tested")));
    }
    let is_live = |test: &ConfigTest| usize::from(test.live.is_some());
    if let Some(test) = beyond(&model.tests, MAX_LIVE_TESTS, is_live) {
        let message = "there are too many live tests";
        let fault = Diagnostic::new(DiagnosticCode::TooManyTests, test.place, message);
        d.push(fault.label(format!("more than {MAX_LIVE_TESTS} with this one")));
    }
}

/// The first item with which the sum exceeds `most`.
fn beyond<T>(items: &[T], most: usize, cost: impl Fn(&T) -> usize) -> Option<&T> {
    let mut sum = 0_usize;
    items.iter().find(|item| {
        sum = sum.saturating_add(cost(item));
        most < sum
    })
}

fn pairs(route: &Route) -> usize {
    let (hosts, paths) = (route.matches.hosts.len(), route.matches.paths.len());
    hosts.max(1).saturating_mul(paths.max(1))
}

fn request_bytes(test: &ConfigTest) -> usize {
    let request = &test.request;
    let headers = request.headers.iter();
    let headers = headers.map(|(name, value)| name.len() + value.len());
    COMPARISON_BYTES + request.url.len() + headers.sum::<usize>()
}
