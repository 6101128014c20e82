//! The JSON form of a difference, with stable keys.

use crate::diff::{
    Answer, AnsweringService, Drained, PartChange, PlanDiff, Region, Risk, SettingChange,
    shown_header,
};
use crate::explain::ExplainRequest;
use serde_json::{Value, json};

/// The difference as one object. Secrets of the configuration are redacted.
#[must_use]
pub fn diff_json(diff: &PlanDiff) -> Value {
    let PlanDiff {
        regions,
        successors: _, // For the gate of a rollout.
        unreachable,
        parts,
        settings,
        drained,
        risks,
        sampled_regexes,
        limits,
    } = diff;
    json!({
        "same": diff.is_same(),
        "risks": risks.iter().map(risk).collect::<Vec<_>>(),
        "requests": regions.iter().map(region).collect::<Vec<_>>(),
        "unreachable_routes": unreachable,
        "parts": parts.iter().map(part).collect::<Vec<_>>(),
        "settings": settings.iter().map(setting).collect::<Vec<_>>(),
        "drained": drained.iter().map(self::drained).collect::<Vec<_>>(),
        "sampled_regexes": sampled_regexes,
        "limits": limits.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

fn risk(risk: &Risk) -> Value {
    let Risk {
        class,
        subject,
        change,
    } = risk;
    json!({ "class": class.name(), "subject": subject, "change": change })
}

fn region(region: &Region) -> Value {
    let Region {
        listeners,
        hosts,
        is_every_host,
        paths,
        is_every_path,
        fields,
        before,
        after,
        example,
    } = region;
    let is_sampled = paths.iter().any(|path| path.is_sampled);
    json!({
        "listeners": listeners,
        "hosts": hosts.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "every_host": is_every_host,
        "paths": paths.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "every_path": is_every_path,
        "sampled": is_sampled,
        "conditions": fields.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "before": answer(before),
        "after": answer(after),
        "example": request(example, &region.example_url()),
    })
}

fn answer(answer: &Answer) -> Value {
    let (action, name) = match &answer.service {
        AnsweringService::Upstream(name) => ("forward", json!({ "upstream": &**name })),
        AnsweringService::Builtin(handler) => ("answer", json!({ "handler": handler })),
        AnsweringService::Files(root) => ("files", json!({ "root": root })),
        AnsweringService::Redirect(to) => ("redirect", json!({ "redirect": &**to })),
        AnsweringService::Respond(status) => ("respond", json!({ "status": status })),
        AnsweringService::Refusal { status, reason } => {
            ("refuse", json!({ "status": status, "reason": reason }))
        }
    };
    let mut object = json!({ "route": answer.route.as_deref(), "action": action });
    if let (Value::Object(object), Value::Object(name)) = (&mut object, name) {
        object.extend(name);
    }
    object
}

fn request(request: &ExplainRequest, url: &str) -> Value {
    let ExplainRequest {
        method,
        url: _,
        headers,
        client_ip: _,
        listener,
    } = request;
    let headers = headers
        .iter()
        .map(|(name, value)| shown_header(name, value));
    json!({
        "listener": listener,
        "method": method,
        "url": url,
        "headers": headers.collect::<Vec<_>>(),
    })
}

fn part(change: &PartChange) -> Value {
    json!({ "part": change.part.to_string(), "change": change.change.name() })
}

fn setting(change: &SettingChange) -> Value {
    let SettingChange {
        path,
        row: _,
        owner: _,
        change,
        before,
        after,
        routes,
        ..
    } = change;
    json!({
        "path": path,
        "change": change.name(),
        "before": before,
        "after": after,
        "routes": routes,
    })
}

fn drained(drained: &Drained) -> Value {
    let Drained {
        connections,
        settings,
    } = drained;
    json!({ "connections": connections.to_string(), "settings": settings })
}
