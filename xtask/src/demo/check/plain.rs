//! Single requests: routing, balancing, errors, the admin side, a WebSocket.

use super::ensure;
use crate::demo::curl::{self, Answer};
use crate::demo::stage::{Stage, json};
use crate::demo::websocket::Client;
use crate::task_error::TaskError;
use serde_json::Value;
use std::collections::BTreeSet;

/// Requests within which both targets must have had a turn, whichever worker takes them.
const TURNS: usize = 20;

pub(super) fn routes(stage: &mut Stage) -> Result<String, TaskError> {
    for name in ["one", "two"] {
        let answer = curl::get(&stage.web(&format!("/{name}")), &[])?;
        let answered = answer.status == 200 && answerer(&answer) == format!("upstream {name}");
        ensure(answered, || format!("/{name}: {answer:?}"))?;
        let told = answer.body.contains("x-forwarded-for: 127.0.0.1\n");
        ensure(told, || {
            format!("no client address upstream: {}", answer.body)
        })?;
    }
    Ok("/one and /two, each told the client's address".to_owned())
}

pub(super) fn turns(stage: &mut Stage) -> Result<String, TaskError> {
    let mut seen = BTreeSet::new();
    for _ in 0..TURNS {
        let answer = curl::get(&stage.web("/"), &[])?;
        ensure(answer.status == 200, || format!("{answer:?}"))?;
        seen.insert(answerer(&answer).to_owned());
    }
    let seen: Vec<String> = seen.into_iter().collect();
    ensure(seen == ["upstream one", "upstream two"], || {
        format!("only {seen:?}")
    })?;
    Ok(format!("both seen in {TURNS} requests"))
}

pub(super) fn health(stage: &mut Stage) -> Result<String, TaskError> {
    let answer = curl::get(&stage.web("/health"), &[])?;
    let healthy = json(&answer)?.get("status").and_then(Value::as_str) == Some("healthy");
    ensure(answer.status == 200 && healthy, || format!("{answer:?}"))?;
    Ok("/health is healthy".to_owned())
}

pub(super) fn error(stage: &mut Stage) -> Result<String, TaskError> {
    let answer = curl::get(&stage.web("/nowhere"), &[])?;
    ensure(answer.status == 404, || format!("{answer:?}"))?;
    let body = json(&answer)?;
    let field = |name| body.pointer(name).and_then(Value::as_str);
    let code = field("/error/code");
    ensure(code == Some("ROUTE_NOT_FOUND"), || format!("{body}"))?;
    let header = answer.header("x-correlation-id");
    let named = header.is_some() && header == field("/error/correlation_id");
    ensure(named, || {
        format!("X-Correlation-Id is {header:?}, the body {body}")
    })?;
    Ok("404 ROUTE_NOT_FOUND with its correlation ID".to_owned())
}

pub(super) fn admin(stage: &mut Stage) -> Result<String, TaskError> {
    let status = json(&curl::get(&stage.admin("/status"), &[])?)?;
    let healthy = status.get("status").and_then(Value::as_str) == Some("healthy");
    ensure(healthy, || format!("/status: {status}"))?;
    let upstreams = json(&curl::get(&stage.admin("/admin/upstreams"), &[])?)?;
    for name in ["one", "two", "both"] {
        let healthy = upstreams.pointer(&format!("/upstreams/{name}/healthy"));
        let sound = healthy.and_then(Value::as_bool) == Some(true);
        ensure(sound, || format!("/admin/upstreams: {upstreams}"))?;
    }
    let metrics = curl::get(&stage.admin("/metrics"), &[])?;
    let counted = metrics
        .body
        .lines()
        .any(|line| line.starts_with("proxy_requests_total{") && line.contains("route=\"one\""));
    ensure(counted, || {
        format!("/metrics counts no request: {}", metrics.body)
    })?;
    let version = status.get("version").and_then(Value::as_str);
    Ok(format!("version {}", version.unwrap_or("unknown")))
}

pub(super) fn websocket(stage: &mut Stage) -> Result<String, TaskError> {
    let long = "0123456789abcdef".repeat(8 * 1024);
    crate::demo::block_on(async {
        let mut client = Client::connect(stage.at.web, "/one/ws").await?;
        client.echoes("hello").await?;
        client.echoes(&long).await?;
        client.close().await
    })??;
    Ok(format!(
        "5 bytes and {} KiB, and a clean close",
        long.len() / 1024
    ))
}

/// The first line of an upstream's answer.
fn answerer(answer: &Answer) -> &str {
    answer.body.lines().next().unwrap_or_default()
}
