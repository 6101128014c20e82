//! Read-only status page at `/`, from the documents of the other endpoints: health, routes,
//! upstreams, limits and reloads.

pub(super) mod explanation;

use crate::answer::Refused;
use crate::state::AdminState;
use crate::{stats, upstreams};
use askama::Template;
use aws_lc_rs::digest::{SHA256, digest};
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use http::header::{CONTENT_SECURITY_POLICY, REFERRER_POLICY};
use proxy_errors::{Detail, Problem, Reason};
use serde_json::Value;
use std::sync::LazyLock;

const STYLE: &str = include_str!("../../assets/page.css");

/// Maximum number of routes, and of targets of one upstream. Only the number of further ones is
/// shown.
const MAX_ROUTES: usize = 200;
const MAX_TARGETS: usize = 100;

/// Hash of the style sheet, for a `Content-Security-Policy` that permits no scripts, other files or
/// framing.
static STYLE_HASH: LazyLock<String> =
    LazyLock::new(|| STANDARD.encode(digest(&SHA256, STYLE.as_bytes())));

#[derive(Template)]
#[template(path = "page.html")]
struct Page {
    style: &'static str,
    heading: String,
    /// Whether the page reloads itself. Off by default, because readers may need more time.
    reloads: bool,
    facts: Vec<(&'static str, String)>,
    upstreams: Vec<Upstream>,
    routes: Vec<Route>,
    more_routes: usize,
    limits: Vec<Limit>,
    requests: Vec<(&'static str, String)>,
}

struct Upstream {
    name: String,
    targets: Vec<Target>,
    more: usize,
}

struct Target {
    address: String,
    is_healthy: bool,
    /// Health, with the causes of a target that receives no new requests.
    state: String,
    last_error: String,
    requests: String,
    failures: String,
    active: String,
}

struct Route {
    name: String,
    priority: String,
    matches: String,
    service: String,
    requests: String,
    errors: String,
    p99: String,
    source: String,
}

struct Limit {
    setting: String,
    current: String,
    maximum: String,
    rejected: String,
    has_rejected: bool,
}

/// Renders the page; with `reloads` it reloads itself every 30 seconds.
pub(super) fn show(state: &AdminState, reloads: bool) -> Response {
    let snapshot = state.sources.registry.snapshot();
    let plan = state.plan.load();
    let stats = stats::document(state);
    let status = state.sources.lifecycle.status();
    let upstreams = upstream_rows(&upstreams::document(&plan.plan, &snapshot));
    let routes: Vec<Value> = serde_json::from_slice(&plan.routes()).unwrap_or_default();
    let page = Page {
        style: STYLE,
        heading: heading(&status, &upstreams),
        reloads,
        facts: facts(state, &status),
        upstreams,
        more_routes: routes.len().saturating_sub(MAX_ROUTES),
        routes: routes
            .iter()
            .take(MAX_ROUTES)
            .map(|one| route(one, &stats))
            .collect(),
        limits: limits(&stats),
        requests: requests(&stats),
    };
    respond(&page, "form-action 'none'")
}

/// Responds with a page. `forms` is the policy's `form-action` directive.
fn respond(page: &impl Template, forms: &str) -> Response {
    let Ok(text) = page.render() else {
        return Refused(Problem::new(Reason::InternalError, Detail::None)).into_response();
    };
    let mut response = Html(text).into_response();
    let headers = response.headers_mut();
    let style = &*STYLE_HASH;
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; {forms}; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::try_from(policy) {
        headers.insert(CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

/// Returns the most severe state: draining, failed reload, upstream without a healthy target,
/// unhealthy target.
fn heading(status: &Value, upstreams: &[Upstream]) -> String {
    if status["draining"] == true {
        return "The proxy drains: it takes no new connections.".to_owned();
    }
    if status["last_config_reload_result"] == "failure" {
        return "The last reload failed; the configuration before it is in force.".to_owned();
    }
    let is_down = |upstream: &&Upstream| {
        !upstream.targets.is_empty() && upstream.targets.iter().all(|target| !target.is_healthy)
    };
    if let Some(down) = upstreams.iter().find(is_down) {
        return format!("Upstream {} has no healthy target.", down.name);
    }
    let targets = || upstreams.iter().flat_map(|upstream| &upstream.targets);
    match (
        targets().filter(|target| !target.is_healthy).count(),
        targets().count(),
    ) {
        (0, 0) => "The proxy serves.".to_owned(),
        (0, 1) => "The proxy serves, and its target is healthy.".to_owned(),
        (0, all) => format!("The proxy serves, and all {all} targets are healthy."),
        (1, all) => format!("1 of {all} targets is unhealthy."),
        (unhealthy, all) => format!("{unhealthy} of {all} targets are unhealthy."),
    }
}

fn facts(state: &AdminState, status: &Value) -> Vec<(&'static str, String)> {
    let build = &state.sources.build;
    let at = time(&status["last_config_reload"]);
    let reload = match status["last_config_reload_result"].as_str() {
        Some("success") => format!("Succeeded at {at}"),
        Some(_) => format!("Failed at {at}"),
        None => "None since the start".to_owned(),
    };
    vec![
        ("Version", format!("{} ({})", build.version, build.commit)),
        ("Started", time(&status["start_time"])),
        (
            "Configuration",
            format!("Number {}", text(&status["config_generation"])),
        ),
        (
            "Reloads that succeeded",
            text(&status["config_reload_count"]),
        ),
        ("Last reload", reload),
    ]
}

fn requests(stats: &Value) -> Vec<(&'static str, String)> {
    let memory = stats.pointer("/memory/rss_bytes").and_then(Value::as_u64);
    let memory = memory.map_or_else(String::new, |bytes| {
        format!("{} MiB", bytes.div_ceil(1 << 20))
    });
    vec![
        ("Requests since the start", text(&stats["requests_total"])),
        ("In flight", text(&stats["requests_in_flight"])),
        ("Active connections", text(&stats["connections_active"])),
        (
            "Answered with 5xx",
            stats
                .pointer("/by_status/5xx")
                .map_or_else(|| "0".to_owned(), text),
        ),
        ("Memory", memory),
    ]
}

fn upstream_rows(document: &Value) -> Vec<Upstream> {
    let all = document["upstreams"].as_object().into_iter().flatten();
    let all = all.map(|(name, upstream)| {
        let targets = upstream["targets"]
            .as_array()
            .map_or(&[][..], Vec::as_slice);
        Upstream {
            name: name.clone(),
            more: targets.len().saturating_sub(MAX_TARGETS),
            targets: targets.iter().take(MAX_TARGETS).map(target).collect(),
        }
    });
    all.collect()
}

fn target(target: &Value) -> Target {
    let is_healthy = target["healthy"] == true;
    let causes = target["causes"].as_array().map_or(&[][..], Vec::as_slice);
    let causes: Vec<String> = causes.iter().map(text).collect();
    let state = match (is_healthy, causes.is_empty()) {
        (true, true) => "Healthy".to_owned(),
        (true, false) => format!("Healthy, {}", causes.join(", ")),
        (false, true) => "Unhealthy".to_owned(),
        (false, false) => format!("Unhealthy: {}", causes.join(", ")),
    };
    Target {
        address: text(&target["address"]),
        is_healthy,
        state,
        last_error: text(&target["last_error"]),
        requests: text(&target["total_requests"]),
        failures: text(&target["failed_requests"]),
        active: text(&target["active_connections"]),
    }
}

fn route(route: &Value, stats: &Value) -> Route {
    let name = text(&route["id"]);
    let by_route = &stats["by_route"];
    let served = by_route.get(&name).unwrap_or(&Value::Null);
    let conditions = route["matches"].as_object().into_iter().flatten();
    let conditions = conditions.map(|(kind, values)| format!("{kind} {}", text(values)));
    let conditions: Vec<String> = conditions.collect();
    let service = [
        &route["upstream"],
        &route["builtin_handler"],
        &route["service_type"],
    ];
    let service = service.into_iter().find(|value| !value.is_null());
    let source = &route["source"];
    Route {
        priority: text(&route["priority"]),
        matches: if conditions.is_empty() {
            "every request".to_owned()
        } else {
            conditions.join("; ")
        },
        service: service.map(text).unwrap_or_default(),
        requests: text(&served["requests"]),
        errors: text(&served["errors"]),
        p99: served
            .pointer("/latency_ms/p99")
            .and_then(Value::as_f64)
            .map_or_else(String::new, |ms| format!("{ms} ms")),
        source: format!("{}:{}", text(&source["file"]), text(&source["line"])),
        name,
    }
}

fn limits(stats: &Value) -> Vec<Limit> {
    let all = stats["limits"].as_object().into_iter().flatten();
    let all = all.map(|(setting, limit)| Limit {
        setting: setting.clone(),
        current: grouped(&text(&limit["current"])),
        maximum: grouped(&text(&limit["limit"])),
        rejected: grouped(&text(&limit["rejected"])),
        has_rejected: limit["rejected"].as_u64().is_some_and(|count| 0 < count),
    });
    all.collect()
}

/// Formats a timestamp as `2026-11-27 21:15:04 UTC`.
fn time(value: &Value) -> String {
    let text = text(value);
    match text.split_once('T') {
        Some((date, time)) => {
            let time = time.trim_end_matches('Z').split('.').next();
            format!("{date} {} UTC", time.unwrap_or_default())
        }
        None => text,
    }
}

/// Groups the digits of a whole number of five digits or more, with no-break spaces.
fn grouped(text: &str) -> String {
    if text.len() < 5 || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.to_owned();
    }
    let mut grouped = String::new();
    for (index, digit) in text.chars().enumerate() {
        if 0 < index && (text.len() - index).is_multiple_of(3) {
            grouped.push('\u{a0}');
        }
        grouped.push(digit);
    }
    grouped
}

/// Formats a JSON value for display; empty for `null`.
fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(members) => {
            let members: Vec<String> = members.iter().map(text).collect();
            members.join(", ")
        }
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_numbers_are_grouped() {
        let shown = ["100", "8192", "104857600", "100.0"].map(grouped);
        assert_eq!(shown, ["100", "8192", "104\u{a0}857\u{a0}600", "100.0"]);
    }

    #[test]
    fn a_time_is_readable_and_names_its_zone() {
        assert_eq!(
            time(&json!("2026-11-27T21:15:04.25Z")),
            "2026-11-27 21:15:04 UTC"
        );
        assert_eq!(time(&Value::Null), "");
    }

    #[test]
    fn the_heading_names_the_worst() {
        let upstreams = |healthy: &[bool]| {
            let targets = healthy.iter().map(|healthy| json!({"healthy": healthy}));
            let targets: Vec<Value> = targets.collect();
            upstream_rows(&json!({"upstreams": {"app": {"targets": targets}}}))
        };
        let well = json!({"draining": false, "last_config_reload_result": null});
        for (healthy, expected) in [
            (&[][..], "The proxy serves."),
            (
                &[true, true],
                "The proxy serves, and all 2 targets are healthy.",
            ),
            (&[true, false], "1 of 2 targets is unhealthy."),
            (&[false, false], "Upstream app has no healthy target."),
        ] {
            assert_eq!(heading(&well, &upstreams(healthy)), expected);
        }
        let failed = json!({"draining": false, "last_config_reload_result": "failure"});
        assert!(heading(&failed, &upstreams(&[false])).starts_with("The last reload failed"));
        let draining = json!({"draining": true, "last_config_reload_result": "failure"});
        assert!(heading(&draining, &[]).starts_with("The proxy drains"));
    }
}
