//! Tests drafted from recorded requests.

use super::drafts::{Draft, expected, write_draft};
use crate::decide::Decision;
use crate::diff::Answer;
use crate::diff::replay::RecordedHead;
use crate::explain::ExplainRequest;
use crate::plan::Plan;
use crate::upstream_states::AssumeHealthy;
use http::header::HOST;
use http::uri::PathAndQuery;
use http::{HeaderMap, Method};
use std::collections::BTreeMap;

/// Prefix of a recorded value that replaces a secret.
const DIGEST: &[u8] = b"digest:";

/// A `tests` block with one test per route and method of the recorded requests: the first such
/// request, with the header fields that its route depends on, except fields recorded as digests.
#[must_use]
pub fn draft_recorded_tests(plan: &Plan, heads: impl Iterator<Item = RecordedHead>) -> String {
    let states = AssumeHealthy::new(plan);
    let mut drafts: BTreeMap<(usize, String), Draft> = BTreeMap::new();
    for head in heads {
        let mut headers = head.headers.clone();
        let secrets = headers
            .iter()
            .filter(|(_, value)| value.as_bytes().starts_with(DIGEST));
        let secrets: Vec<_> = secrets.map(|(name, _)| name.clone()).collect();
        for name in secrets {
            headers.remove(name);
        }
        headers.remove(HOST);
        let decide = |headers: &HeaderMap| decide(plan, &states, &head, headers);
        let decision = decide(&headers);
        let Some(route) = decision.route else {
            continue;
        };
        let key = (route.index, head.method.to_string());
        if head.method == Method::CONNECT || drafts.contains_key(&key) {
            continue;
        }
        let Some(expected) = expected(plan, &decision) else {
            continue;
        };
        let answer = Answer::new(plan, &decision);
        for name in headers.keys().cloned().collect::<Vec<_>>() {
            let mut fewer = headers.clone();
            fewer.remove(name);
            if Answer::new(plan, &decide(&fewer)) == answer {
                headers = fewer;
            }
        }
        let draft = Draft {
            request: request(&head, &headers),
            expected,
            has_named_host: true,
        };
        drafts.insert(key, draft);
    }
    let mut text = String::from("tests {\n");
    for ((route, method), draft) in &drafts {
        let route = plan.routes().get(*route);
        let id = route.map_or("", |route| &route.id);
        write_draft(&mut text, &format!("{id} {method}"), draft);
    }
    text.push_str("}\n");
    text
}

fn decide<'p>(
    plan: &'p Plan,
    states: &AssumeHealthy,
    head: &RecordedHead,
    headers: &HeaderMap,
) -> Decision<'p> {
    plan.decide(&head.request(plan, headers), states, head.at)
}

fn request(head: &RecordedHead, headers: &HeaderMap) -> ExplainRequest {
    let path = head.target.as_ref().map_or("/", PathAndQuery::as_str);
    let headers = headers
        .iter()
        .filter_map(|(name, value)| Some((name.to_string(), value.to_str().ok()?.to_owned())));
    ExplainRequest {
        method: head.method.to_string(),
        url: match &*head.host {
            "" => path.to_owned(),
            host => format!("http://{host}{path}"),
        },
        headers: headers.collect(),
        client_ip: None,
        listener: head.listener.clone(),
    }
}
