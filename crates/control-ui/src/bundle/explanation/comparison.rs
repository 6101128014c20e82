//! Comparison of two decisions on one request.

use super::document::{Document, Outcome};
use crate::view::phrase::{count, list_of, pick, sentence};
use std::collections::BTreeMap;

/// Maximum number of changed settings shown among the steps.
const MAX_STEPS: usize = 8;

/// Heading of the page, and the sentence below it.
pub(super) struct Compared {
    pub(super) heading: String,
    pub(super) rest: String,
}

/// A step of the request's way through the proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) label: String,
    pub(super) value: String,
    /// Value under the other bundle; `None` if equal.
    pub(super) other: Option<String>,
}

/// A changed setting that applies to the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub(super) path: String,
    /// Value under the older bundle; empty if the setting does not apply.
    pub(super) before: String,
    pub(super) after: String,
    pub(super) source: String,
}

impl Compared {
    /// Table of a single decision.
    pub(super) fn alone(document: &Document) -> Self {
        Self {
            heading: sentence(&format!("this request {}", clause(document))),
            rest: detail(document),
        }
    }
}

/// Compares the decision `now` with the one under another bundle.
pub(super) fn compare(
    now: &Document,
    name: &str,
    then: &Document,
    changed: &[Changed],
) -> Compared {
    let (before, after) = (clause(now), clause(then));
    if before != after {
        let heading = format!("With “{name}”, this request {after}.");
        let rest = sentence(&format!("now it {before}"));
        return Compared { heading, rest };
    }
    let heading = match changed {
        _ if now.agents_differ(then) => {
            format!("With “{name}”, other agents are asked about this request.")
        }
        _ if now.targets_differ(then) => {
            format!("With “{name}”, the upstream of this request has other targets.")
        }
        [] => format!("Nothing changes for this request with “{name}”."),
        [one] if !one.before.is_empty() && !one.after.is_empty() => {
            let setting = one.path.rsplit('.').next().unwrap_or_default();
            let (before, after) = (&one.before, &one.after);
            format!("With “{name}”, {setting} is {after} instead of {before} for this request.")
        }
        several => {
            let number = i64::try_from(several.len()).unwrap_or(i64::MAX);
            let verb = pick(number, "changes", "change");
            format!(
                "With “{name}”, {} of this request {verb}.",
                count(number, "setting")
            )
        }
    };
    Compared {
        heading,
        rest: sentence(&format!("it still {before}")),
    }
}

/// The outcome as a predicate, with the request as subject.
fn clause(document: &Document) -> String {
    let by = document.route.as_ref();
    let by = by.map_or_else(String::new, |route| format!(" by route {}", route.name));
    match &document.outcome {
        Outcome::Forward { upstream, .. } => format!("goes to upstream {}{by}", upstream.name),
        Outcome::Answer { handler } => {
            format!("is answered by the proxy itself, with {handler}{by}")
        }
        Outcome::Files { root } => format!("gets a file below {root}{by}"),
        Outcome::Refuse { status, .. } => format!("is refused with status {status}"),
    }
}

fn detail(document: &Document) -> String {
    let Outcome::Refuse {
        message, nearest, ..
    } = &document.outcome
    else {
        return String::new();
    };
    let nearest = nearest.as_ref();
    let nearest = nearest.map(|nearest| format!(" The nearest route is {}.", nearest.words()));
    format!("{}{}", sentence(message), nearest.unwrap_or_default())
}

/// Settings that differ between two decisions, by path.
pub(super) fn changes(now: &Document, then: &Document) -> Vec<Changed> {
    let mut paths: BTreeMap<&str, Changed> = BTreeMap::new();
    let entry = |path: &str, source: &str| Changed {
        path: path.to_owned(),
        before: String::new(),
        after: String::new(),
        source: source.to_owned(),
    };
    for setting in &now.settings {
        let own = paths.entry(&setting.path);
        own.or_insert_with(|| entry(&setting.path, &setting.origin))
            .before = setting.value();
    }
    for setting in &then.settings {
        let own = paths.entry(&setting.path);
        let own = own.or_insert_with(|| entry(&setting.path, &setting.origin));
        own.after = setting.value();
        own.source.clone_from(&setting.origin);
    }
    let all = paths.into_values();
    all.filter(|one| one.before != one.after).collect()
}

/// Steps in the order of processing (listener, client, host, path, route, agents, response),
/// followed by changed settings.
pub(super) fn steps(now: &Document, then: Option<&Document>, changed: &[Changed]) -> Vec<Step> {
    let own = values(now);
    let others = then.map(values);
    let mut steps: Vec<Step> = Vec::new();
    for (index, (label, value)) in own.into_iter().enumerate() {
        let other = others.as_ref().and_then(|others| others.get(index));
        let other = other.map(|(_, other)| other.clone());
        if value.is_empty() && other.as_ref().is_none_or(String::is_empty) {
            continue;
        }
        steps.push(Step {
            label: label.to_owned(),
            other: other.filter(|other| *other != value),
            value: or_none(value),
        });
    }
    for one in changed.iter().take(MAX_STEPS) {
        steps.push(Step {
            label: one.path.rsplit('.').next().unwrap_or_default().to_owned(),
            value: or_none(one.before.clone()),
            other: Some(or_none(one.after.clone())),
        });
    }
    steps
}

fn or_none(value: String) -> String {
    if value.is_empty() {
        "none".to_owned()
    } else {
        value
    }
}

/// Names and values of the steps, always in the same order.
fn values(document: &Document) -> [(&'static str, String); 7] {
    let request = &document.request;
    let agents: Vec<&str> = document
        .agents
        .iter()
        .map(|one| one.name.as_str())
        .collect();
    let canonical = request.path.canonical.clone();
    let listener = document.listener.as_ref();
    let route = document.route.as_ref();
    [
        (
            "Listener",
            listener.map_or_else(String::new, |one| one.name.clone()),
        ),
        ("Client", request.client_ip.clone().unwrap_or_default()),
        ("Host", request.host.matched.clone().unwrap_or_default()),
        (
            "Path",
            canonical.unwrap_or_else(|| format!("{} (refused)", request.path.sent)),
        ),
        (
            "Route",
            route.map_or_else(String::new, |one| one.name.clone()),
        ),
        ("Agents", list_of(&agents)),
        ("Answer", answer(&document.outcome)),
    ]
}

fn answer(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Forward {
            upstream,
            candidates,
        } => {
            let targets = i64::try_from(candidates.len()).unwrap_or(i64::MAX);
            match candidates.as_slice() {
                [one] => format!("Upstream {}, target {}", upstream.name, one.address),
                _ => format!("Upstream {}, {}", upstream.name, count(targets, "target")),
            }
        }
        Outcome::Answer { handler } => format!("The proxy itself: {handler}"),
        Outcome::Files { root } => format!("Files below {root}"),
        Outcome::Refuse { status, .. } => format!("Status {status}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn document(upstream: &str, secs: u32) -> Document {
        let named = |name: &str| json!({"name": name, "source": "proxy.kdl:1"});
        let settings = [
            json!({"path": "upstreams.upstream[\"cart\"].timeouts.request-secs", "value": secs,
                "origin": "proxy.kdl:3"}),
            json!({"path": "limits.max-header-count", "value": 100, "origin": "default"}),
        ];
        let value: Value = json!({
            "request": {"host": {"matched": "a"}, "path": {"sent": "/", "canonical": "/"},
                "client_ip": null},
            "listener": named("http"),
            "route": {"name": "shop", "source": "proxy.kdl:2", "priority": 0,
                "matched": [{"condition": "host", "value": "a"}], "default_route": null},
            "agents": [],
            "outcome": {"action": "forward", "upstream": named(upstream),
                "candidates": [{"address": "10.0.0.1:80"}]},
            "rejected": [{"name": "rest", "source": "proxy.kdl:9", "priority": 0,
                "why": {"outranked_by": "shop", "because": "host"}}],
            "settings": settings,
        });
        Document::read(value).unwrap()
    }

    #[test]
    fn the_heading_says_what_another_bundle_changes() {
        let now = document("cart", 60);
        assert_eq!(
            Compared::alone(&now).heading,
            "This request goes to upstream cart by route shop."
        );
        let heading = |then: &Document| {
            let changed = changes(&now, then);
            compare(&now, "spring", then, &changed).heading
        };
        assert_eq!(
            heading(&now),
            "Nothing changes for this request with “spring”."
        );
        assert_eq!(
            heading(&document("cart", 2)),
            "With “spring”, request-secs is 2 instead of 60 for this request."
        );
        let mut elsewhere = document("cart", 60);
        if let Outcome::Forward { candidates, .. } = &mut elsewhere.outcome {
            candidates[0].address = "10.0.0.2:80".to_owned();
        }
        assert_eq!(
            heading(&elsewhere),
            "With “spring”, the upstream of this request has other targets."
        );
        assert_eq!(
            heading(&document("beta", 60)),
            "With “spring”, this request goes to upstream beta by route shop."
        );
    }

    #[test]
    fn the_steps_show_both_values_where_they_differ() {
        let (now, then) = (document("cart", 60), document("cart", 2));
        let changed = changes(&now, &then);
        let steps = steps(&now, Some(&then), &changed);
        let step = |label: &str| steps.iter().find(|step| step.label == label).unwrap();
        assert_eq!(step("Route").other, None);
        assert_eq!(step("request-secs").value, "60");
        assert_eq!(step("request-secs").other.as_deref(), Some("2"));
        assert!(steps.iter().all(|step| step.label != "Agents"));
    }

    #[test]
    fn routes_are_listed_by_rank() {
        let reasons = document("cart", 60).reasons();
        assert_eq!(reasons[0].because, "host a");
        assert_eq!(reasons[1].because, "the host of shop is more specific");
    }
}
