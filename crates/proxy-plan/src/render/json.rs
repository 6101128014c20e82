//! The JSON form of an explanation, with stable keys.

use crate::explain::{
    Candidate, Explanation, Handler, Lost, MatchReason, Named, Nearest, Readiness, Winner,
};
use proxy_errors::Problem;
use proxy_model::{EffectiveSetting, Sources};
use proxy_routing::{DecidingRank, Unmet};
use serde_json::{Map, Value, json};

/// The explanation as one object.
#[must_use]
pub fn json(explanation: &Explanation) -> Value {
    let Explanation {
        method,
        host,
        path,
        query,
        client_ip,
        ignored,
        is_tls: _,
        listener,
        winner,
        agents,
        answerer,
        rewritten,
        rejected,
        settings,
        sources,
    } = explanation;
    let rejected = rejected.iter().map(|one| {
        let mut object = named(&one.route);
        object.insert("priority".to_owned(), one.priority.into());
        object.insert("why".to_owned(), lost(&one.why));
        Value::from(object)
    });
    let settings = settings.iter().map(|one| setting(sources, one));
    json!({
        "request": {
            "method": method,
            "host": { "sent": host.sent, "matched": host.seen },
            "path": { "sent": path.sent, "canonical": path.seen },
            "query": query,
            "client_ip": client_ip.map(|ip| ip.to_string()),
            "ignored": ignored,
        },
        "listener": listener.as_ref().map(named),
        "route": winner.as_ref().map(won),
        "agents": agents.iter().map(named).collect::<Vec<_>>(),
        "outcome": outcome(answerer),
        "rewritten": rewritten,
        "rejected": rejected.collect::<Vec<_>>(),
        "settings": settings.collect::<Vec<_>>(),
    })
}

/// A setting as `{path, value, origin}`; the origin is `file:line` or `default`.
#[must_use]
pub fn setting(sources: &Sources, setting: &EffectiveSetting) -> Value {
    let EffectiveSetting {
        path,
        row: _,
        value,
        origin,
    } = setting;
    json!({ "path": path, "value": value, "origin": sources.origin(*origin) })
}

fn named(named: &Named) -> Map<String, Value> {
    let Named { name, source } = named;
    let mut object = Map::new();
    object.insert("name".to_owned(), name.as_str().into());
    object.insert("source".to_owned(), source.as_str().into());
    object
}

fn won(winner: &Winner) -> Value {
    let Winner {
        route,
        priority,
        taken,
    } = winner;
    let (matched, default_route) = match taken {
        MatchReason::Matched(conditions) => (conditions.as_slice(), None),
        MatchReason::Default { source } => (&[][..], Some(source)),
    };
    let matched = matched.iter().map(|condition| {
        json!({
            "condition": condition.setting,
            "value": condition.value,
            "source": condition.source,
        })
    });
    let mut object = named(route);
    object.insert("priority".to_owned(), (*priority).into());
    object.insert("matched".to_owned(), matched.collect());
    object.insert(
        "default_route".to_owned(),
        json!(default_route.map(|source| json!({ "source": source }))),
    );
    object.into()
}

fn outcome(answerer: &Handler) -> Value {
    match answerer {
        Handler::Upstream {
            upstream,
            target,
            candidates: all,
        } => json!({
            "action": "forward",
            "upstream": named(upstream),
            "target": target,
            "candidates": candidates(all),
        }),
        Handler::Builtin(handler) => json!({
            "action": "answer",
            "handler": handler.name(),
        }),
        Handler::Files(Named { name, source }) => json!({
            "action": "files",
            "root": name,
            "source": source,
        }),
        Handler::Redirect { status, location } => json!({
            "action": "redirect",
            "status": status,
            "location": location,
        }),
        Handler::Respond { status, body_bytes } => json!({
            "action": "respond",
            "status": status,
            "body_bytes": body_bytes,
        }),
        Handler::Refused {
            problem,
            nearest,
            candidates: all,
        } => refusal(problem, nearest.as_ref(), all),
    }
}

fn refusal(problem: &Problem, nearest: Option<&Nearest>, all: &[Candidate]) -> Value {
    let nearest = nearest.map(|nearest| {
        let mut object = named(&nearest.route);
        object.insert("unmet".to_owned(), unmet(&nearest.unmet));
        object
    });
    json!({
        "action": "refuse",
        "status": problem.status().as_u16(),
        "code": problem.error_type().code(),
        "reason": problem.reason().as_str(),
        "message": problem.client_message(),
        "detail": problem.log_message(),
        "nearest": nearest,
        "candidates": candidates(all),
    })
}

fn candidates(all: &[Candidate]) -> Value {
    let all = all.iter().map(|candidate| {
        let (state, last_error) = match &candidate.readiness {
            Readiness::Next => ("next", None),
            Readiness::Ready => ("ready", None),
            Readiness::Backup => ("backup", None),
            Readiness::Draining => ("draining", None),
            Readiness::Unhealthy(last_error) => ("unhealthy", last_error.as_deref()),
        };
        json!({
            "address": candidate.address,
            "name": candidate.name,
            "state": state,
            "last_error": last_error,
        })
    });
    all.collect()
}

fn lost(why: &Lost) -> Value {
    match why {
        Lost::Condition(condition) => json!({ "unmet": unmet(condition) }),
        Lost::Outranked { by, because } => {
            json!({ "outranked_by": by, "because": because_word(*because) })
        }
    }
}

fn unmet(unmet: &Unmet) -> Value {
    let Unmet { kind, wanted, got } = unmet;
    json!({ "condition": kind.as_str(), "wanted": wanted, "got": got })
}

fn because_word(because: DecidingRank) -> &'static str {
    match because {
        DecidingRank::Priority => "priority",
        DecidingRank::Path => "path",
        DecidingRank::Host => "host",
        DecidingRank::Conditions => "conditions",
        DecidingRank::Order => "order",
    }
}
