//! Tests drafted from the routes of a configuration.

use crate::decide::{Decision, Outcome};
use crate::diff::{shown_header, survey};
use crate::explain::ExplainRequest;
use crate::plan::Plan;
use crate::route::{Redirection, RoutePlan};
use proxy_errors::{Problem, Reason};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// The client of a test that names none.
const DEFAULT_CLIENT: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// A request matched by a route, and the expectations of a test for it.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) request: ExplainRequest,
    pub(super) expected: String,
    pub(super) has_named_host: bool,
}

/// A `tests` block with one test for each route that matches a request: a request, its route and
/// service, and the called agents. Routes with secrets in their conditions are named in a comment
/// only.
#[must_use]
pub fn draft_tests(plan: &Plan) -> String {
    let mut drafts: BTreeMap<usize, Draft> = BTreeMap::new();
    survey(plan, &[], &[], |surveyed| {
        let Some(route) = surveyed.decision.route else {
            return;
        };
        let has_named_host = surveyed.has_named_host();
        let known = drafts.get(&route.index);
        if known.is_some_and(|draft| draft.has_named_host || !has_named_host) {
            return;
        }
        let Some(expected) = expected(plan, &surveyed.decision) else {
            return;
        };
        let listener = surveyed.listeners.first().map(String::as_str);
        let Some(client_ip) = admitted_client(plan, listener, route) else {
            return;
        };
        drafts.insert(
            route.index,
            Draft {
                request: ExplainRequest {
                    client_ip: Some(client_ip).filter(|ip| *ip != DEFAULT_CLIENT),
                    ..surveyed.request(listener)
                },
                expected,
                has_named_host,
            },
        );
    });
    let mut text = String::from("tests {\n");
    for route in plan.routes() {
        match drafts.get(&route.index) {
            Some(draft) if has_secret(&draft.request) => {
                // Writing to a `String` cannot fail.
                _ = writeln!(
                    text,
                    "    // route {:?}: a condition has a secret",
                    route.id
                );
            }
            Some(draft) => write_draft(&mut text, &route.id, draft),
            None => _ = writeln!(text, "    // route {:?} takes no request", route.id),
        }
    }
    text.push_str("}\n");
    text
}

/// The expectations of a decision; `None` for a refusal.
pub(super) fn expected(plan: &Plan, decision: &Decision<'_>) -> Option<String> {
    let route = decision.route?;
    let mut expected = format!("route {:?}", route.id);
    match &decision.outcome {
        Outcome::Forward(upstream, _) => _ = write!(expected, "; upstream {:?}", upstream.name),
        Outcome::Answer(handler) => _ = write!(expected, "; builtin-handler {:?}", handler.name()),
        Outcome::Files => {}
        Outcome::Redirect(Redirection { location, .. }) => {
            let location = String::from_utf8_lossy(location.as_bytes());
            _ = write!(expected, "; redirect {location:?}");
        }
        Outcome::Respond(response) => {
            _ = write!(expected, "; status {}", response.status.as_u16());
        }
        Outcome::Refuse(problem) if is_written(problem) => {
            _ = write!(expected, "; status {}", problem.status().as_u16());
        }
        Outcome::Refuse(_) => return None,
    }
    let agents = plan.routes().get(route.index)?.agents.as_ref();
    if let Some(agents) = agents {
        expected.push_str("; agents");
        for agent in &agents.agents {
            _ = write!(expected, " {:?}", agent.name);
        }
    }
    Some(expected)
}

/// A client that both the listener and the route admit.
fn admitted_client(plan: &Plan, listener: Option<&str>, route: &RoutePlan) -> Option<IpAddr> {
    let mut listeners = plan.listeners().iter();
    let listener = listeners.find(|one| Some(one.name.as_str()) == listener);
    let listener = listener.and_then(|one| one.access.as_deref());
    let access = [listener, route.access.as_deref()];
    let samples = access.iter().flatten().flat_map(|access| access.samples());
    let mut clients = std::iter::once(DEFAULT_CLIENT).chain(samples);
    clients.find(|ip| access.iter().flatten().all(|access| access.admits(*ip)))
}

/// Returns true if the route's `respond` is the reason of a refusal.
fn is_written(problem: &Problem) -> bool {
    let written = [Reason::RespondClientError, Reason::RespondServerError];
    written.contains(&problem.reason())
}

pub(super) fn write_draft(text: &mut String, route: &str, draft: &Draft) {
    let ExplainRequest {
        method,
        url,
        headers,
        client_ip,
        listener,
    } = &draft.request;
    _ = writeln!(text, "    test {route:?} {{");
    _ = writeln!(text, "        request {method:?} {url:?}");
    for (name, value) in headers {
        _ = writeln!(text, "        header {name:?} {value:?}");
    }
    if let Some(listener) = listener {
        _ = writeln!(text, "        listener {listener:?}");
    }
    if let Some(client_ip) = client_ip {
        _ = writeln!(text, "        client-ip \"{client_ip}\"");
    }
    _ = writeln!(text, "        expect {{ {} }}\n    }}", draft.expected);
}

fn has_secret(request: &ExplainRequest) -> bool {
    let mut headers = request.headers.iter();
    headers.any(|(name, value)| shown_header(name, value).ends_with("(redacted)"))
}
