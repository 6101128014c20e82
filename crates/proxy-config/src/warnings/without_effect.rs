//! Settings without effect, because another one switches their part off.

use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::diagnostics::Diagnostics;
use proxy_model::registry::{listeners, observability, outlier_detection as outliers_spec};
use proxy_model::{
    Agent, AgentEventKind, Alpn, Listener, ListenerProtocol, LoadBalancing, Model, OversizeMode,
    Place, Setting, Upstream,
};

pub(super) fn find(model: &Model, faults: &mut Diagnostics) {
    let mut found = Vec::new();
    otlp(model, &mut found);
    trace_sampling(model, &mut found);
    queue_wait(model, &mut found);
    dns(model, &mut found);
    admin_token(model, &mut found);
    access_log(model, &mut found);
    for listener in &model.listeners {
        streams(listener, &mut found);
        handshake(listener, &mut found);
    }
    model.agents.iter().for_each(|it| oversize(it, &mut found));
    for upstream in &model.upstreams {
        slow_start(upstream, &mut found);
        outliers(upstream, &mut found);
    }
    for retry in model
        .routes
        .iter()
        .filter_map(|it| it.policies.retry.as_ref())
    {
        if *retry.attempts == 0 {
            let cause = Cause::at("under `attempts 0`", retry.attempts.place());
            found.push(Ineffective::new("on", retry.on.place(), &cause));
            found.push(Ineffective::new(
                "budget-percent",
                retry.budget_percent.place(),
                &cause,
            ));
        }
    }
    for Ineffective { name, place, cause } in found {
        let Some(place) = place else {
            continue;
        };
        let message = format!("`{name}` has no effect {}", cause.text);
        let fault = Diagnostic::new(DiagnosticCode::WithoutEffect, place, message);
        let fault = match cause.place {
            Some(place) => fault.related(place, "because of this"),
            None => fault,
        };
        faults.push(fault.help(format!("leave `{name}` out, or change the other setting")));
    }
}

/// A setting, and the reason why it has no effect.
struct Ineffective {
    name: &'static str,
    /// `None` if it is not written.
    place: Option<Place>,
    cause: Cause,
}

#[derive(Clone)]
struct Cause {
    text: &'static str,
    /// `None` for a setting that is not written.
    place: Option<Place>,
}

impl Cause {
    const fn at(text: &'static str, place: Option<Place>) -> Self {
        Self { text, place }
    }
}

impl Ineffective {
    fn new(name: &'static str, place: Option<Place>, cause: &Cause) -> Self {
        let cause = cause.clone();
        Self { name, place, cause }
    }
}

/// The place of a setting that is written with another value than its default: stating a default is
/// not a mistake.
fn changed<T: PartialEq>(setting: &Setting<T>, default: &T) -> Option<Place> {
    setting.place().filter(|_| setting.value != *default)
}

fn otlp(model: &Model, found: &mut Vec<Ineffective>) {
    let Some(otlp) = &model.observability.otlp else {
        return;
    };
    if !*otlp.traces {
        let cause = Cause::at("under `traces #false`", otlp.traces.place());
        found.push(Ineffective::new(
            "queue-spans",
            otlp.queue_spans.place(),
            &cause,
        ));
    }
    if !*otlp.metrics {
        let cause = Cause::at("under `metrics #false`", otlp.metrics.place());
        found.push(Ineffective::new(
            "interval-secs",
            otlp.interval.place(),
            &cause,
        ));
    }
}

fn trace_sampling(model: &Model, found: &mut Vec<Ineffective>) {
    let traces = &model.observability.trace_context;
    if !*traces.begin {
        let cause = Cause::at("without `begin #true`", traces.begin.place());
        let place = changed(&traces.sample_percent, &100.0);
        found.push(Ineffective::new("sample-percent", place, &cause));
    }
}

fn queue_wait(model: &Model, found: &mut Vec<Ineffective>) {
    let limits = &model.limits;
    if *limits.max_queued_requests == 0 {
        let cause = Cause::at(
            "under `max-queued-requests 0`",
            limits.max_queued_requests.place(),
        );
        let place = limits.max_queue_wait.place();
        found.push(Ineffective::new("max-queue-wait-secs", place, &cause));
    }
}

fn dns(model: &Model, found: &mut Vec<Ineffective>) {
    let dns = &model.system.dns;
    if *dns.max_ttl < *dns.min_ttl {
        let cause = Cause::at("below `min-ttl-secs`", dns.min_ttl.place());
        found.push(Ineffective::new(
            "max-ttl-secs",
            dns.max_ttl.place(),
            &cause,
        ));
    }
}

/// Access to the Unix socket is a matter of its file's mode.
fn admin_token(model: &Model, found: &mut Vec<Ineffective>) {
    let admin = &model.admin;
    if admin.address.is_none() {
        let cause = Cause::at("under `address \"off\"`", admin.address.place());
        let place = admin.token_file.as_ref().and_then(Setting::place);
        found.push(Ineffective::new("token-file", place, &cause));
    }
}

fn access_log(model: &Model, found: &mut Vec<Ineffective>) {
    let log = &model.observability.access_log;
    if !*log.enabled {
        let cause = Cause::at("under `enabled #false`", log.enabled.place());
        found.push(Ineffective::new("format", log.format.place(), &cause));
        found.push(Ineffective::new("path", log.path.place(), &cause));
        let place = changed(&log.buffer_lines, &observability::ACCESS_BUFFER.default());
        found.push(Ineffective::new("buffer-lines", place, &cause));
    }
}

/// Limits of HTTP/2 and HTTP/3 on a listener without them.
fn streams(listener: &Listener, found: &mut Vec<Ineffective>) {
    let Some(cause) = without_streams(listener) else {
        return;
    };
    let streams = &listener.max_concurrent_streams;
    let place = changed(streams, &listeners::MAX_CONCURRENT_STREAMS.default());
    found.push(Ineffective::new("max-concurrent-streams", place, &cause));
    let place = changed(
        &listener.max_stream_resets,
        &listeners::MAX_STREAM_RESETS.default(),
    );
    found.push(Ineffective::new("max-stream-resets", place, &cause));
}

fn without_streams(listener: &Listener) -> Option<Cause> {
    let alpn = listener.tls.as_ref().map(|tls| tls.alpn.as_slice());
    let alpn = alpn.unwrap_or_default();
    // Without the setting, HTTP/2 is offered.
    let has_http2 = alpn.is_empty() || alpn.iter().any(|it| it.value == Alpn::H2);
    match *listener.protocol {
        ListenerProtocol::Http if !*listener.h2c => Some(Cause::at(
            "on an `http` listener without `h2c #true`",
            listener.h2c.place(),
        )),
        ListenerProtocol::Https if !has_http2 && !*listener.http3 => Some(Cause::at(
            "without `h2` in `alpn`",
            alpn.first().and_then(Setting::place),
        )),
        ListenerProtocol::Http
        | ListenerProtocol::Https
        | ListenerProtocol::Tcp
        | ListenerProtocol::TlsPassthrough => None,
    }
}

/// The time of a TLS handshake and of a PROXY protocol header, where connections have neither.
fn handshake(listener: &Listener, found: &mut Vec<Ineffective>) {
    let is_plain = match *listener.protocol {
        ListenerProtocol::Http => true,
        ListenerProtocol::Tcp => listener.tls.is_none(),
        ListenerProtocol::Https | ListenerProtocol::TlsPassthrough => false,
    };
    if !is_plain || *listener.proxy_protocol {
        return;
    }
    let cause = Cause::at(
        "on a listener without TLS and `proxy-protocol #true`",
        listener.proxy_protocol.place(),
    );
    let time = &listener.timeouts.handshake;
    let place = changed(time, &listeners::HANDSHAKE.default());
    found.push(Ineffective::new("handshake-secs", place, &cause));
}

/// The treatment of large bodies by an agent that receives none.
fn oversize(agent: &Agent, found: &mut Vec<Ineffective>) {
    let mut events = agent.events.iter();
    let has_bodies = events.any(|event| match event.value {
        AgentEventKind::RequestBody | AgentEventKind::ResponseBody => true,
        AgentEventKind::RequestHeaders | AgentEventKind::ResponseHeaders => false,
    });
    if !has_bodies {
        let cause = Cause::at("without bodies among the `events`", None);
        let place = changed(&agent.on_oversize, &OversizeMode::Block);
        found.push(Ineffective::new("on-oversize", place, &cause));
    }
}

fn slow_start(upstream: &Upstream, found: &mut Vec<Ineffective>) {
    if *upstream.load_balancing == LoadBalancing::IpHash {
        let cause = Cause::at(
            "under `load-balancing \"ip_hash\"`",
            upstream.load_balancing.place(),
        );
        let place = upstream.slow_start.as_ref().and_then(Setting::place);
        found.push(Ineffective::new("slow-start-secs", place, &cause));
    }
}

fn outliers(upstream: &Upstream, found: &mut Vec<Ineffective>) {
    let Some(outliers) = &upstream.outlier_detection else {
        return;
    };
    let block = Some(outliers.place);
    if *outliers.max_ejected_percent == 0 {
        let cause = Cause::at(
            "under `max-ejected-percent 0`",
            outliers.max_ejected_percent.place(),
        );
        found.push(Ineffective::new("outlier-detection", block, &cause));
    } else if *outliers.consecutive_failures == 0 && outliers.failure_percent.is_none() {
        let place = outliers.consecutive_failures.place();
        let cause = Cause::at(
            "under `consecutive-failures 0` without `failure-percent`",
            place,
        );
        found.push(Ineffective::new("outlier-detection", block, &cause));
    } else if outliers.failure_percent.is_none() {
        let cause = Cause::at("without `failure-percent`", None);
        let place = changed(
            &outliers.min_requests,
            &outliers_spec::MIN_REQUESTS.default(),
        );
        found.push(Ineffective::new("min-requests", place, &cause));
        let place = changed(&outliers.interval, &outliers_spec::INTERVAL.default());
        found.push(Ineffective::new("interval-secs", place, &cause));
    }
    if *outliers.max_ejection < *outliers.base_ejection {
        let cause = Cause::at("above `max-ejection-secs`", outliers.max_ejection.place());
        found.push(Ineffective::new(
            "base-ejection-secs",
            outliers.base_ejection.place(),
            &cause,
        ));
    }
}
