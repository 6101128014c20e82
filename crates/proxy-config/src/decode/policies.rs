//! The `policies` block of a route.

pub(super) mod access;
mod basic_auth;
pub(super) mod cache;
mod cors;
pub(super) mod error_pages;
pub(super) mod jwt;
pub(super) mod rewrite;

use super::block::Block;
use super::compression::compression;
use super::decoder::Decoder;
use super::headers::{Rows, edits, protected_in_requests, protected_in_responses};
use super::shadow::shadow;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::{circuit_breaker, policies as spec};
use proxy_model::{
    CircuitBreaker, Policies, RateLimit, RequestRate, Retry, RetryCause, RouteTimeouts, Setting,
};
use std::time::Duration;

const REQUEST_HEADER_ROWS: Rows = Rows {
    block: &spec::REQUEST_HEADERS,
    set: &spec::SET_REQUEST,
    add: &spec::ADD_REQUEST,
    remove: &spec::REMOVE_REQUEST,
    preset: None,
    protected: protected_in_requests,
};

const RESPONSE_HEADER_ROWS: Rows = Rows {
    block: &spec::RESPONSE_HEADERS,
    set: &spec::SET_RESPONSE,
    add: &spec::ADD_RESPONSE,
    remove: &spec::REMOVE_RESPONSE,
    preset: Some(&spec::RESPONSE_PRESET),
    protected: protected_in_responses,
};

/// The policies, and the circuit breaker if it is written among them.
pub(super) fn policies<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
) -> (Policies, Option<CircuitBreaker>) {
    let b = b.inner(d, &spec::POLICIES).unwrap_or_else(Block::empty);
    let policies = Policies {
        timeouts: timeouts(d, &b),
        max_body_size: b.optional(d, &spec::MAX_BODY_SIZE),
        access: access::access(d, &b, &access::ROUTE),
        basic_auth: basic_auth::basic_auth(d, &b),
        jwt: jwt::jwt(d, &b),
        error_pages: error_pages::error_pages(d, &b, &error_pages::ROUTE),
        cors: cors::cors(d, &b),
        rate_limit: rate_limit(d, &b),
        request_headers: edits(d, &b, &REQUEST_HEADER_ROWS),
        response_headers: edits(d, &b, &RESPONSE_HEADER_ROWS),
        path_policy: b.optional(d, &spec::PATH_POLICY),
        buffer_requests: b.setting(d, &spec::BUFFER_REQUESTS),
        buffer_responses: b.setting(d, &spec::BUFFER_RESPONSES),
        retry: retry(d, &b),
        compression: compression(d, &b),
        rewrite: rewrite::rewrite(d, &b),
        shadow: shadow(d, &b),
        cache: cache::route_cache(d, &b),
    };
    if let (Some(basic), Some(jwt)) = (&policies.basic_auth, &policies.jwt) {
        let message = "`basic-auth` and `jwt` exclude each other in a route";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, jwt.place, message);
        let fault = fault.related(basic.place, "passwords here");
        d.push(fault.help("write two routes, or leave one of the blocks out"));
    }
    let circuit_breaker = breaker(d, &b);
    b.close(d);
    (policies, circuit_breaker)
}

pub(super) fn breaker<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<CircuitBreaker> {
    let b = b.inner(d, &circuit_breaker::CIRCUIT_BREAKER)?;
    let breaker = CircuitBreaker {
        place: b.place(d),
        failure_threshold: b.setting(d, &circuit_breaker::FAILURE_THRESHOLD),
        timeout: b.setting(d, &circuit_breaker::TIMEOUT),
        success_threshold: b.setting(d, &circuit_breaker::SUCCESS_THRESHOLD),
        half_open_max_requests: b.setting(d, &circuit_breaker::HALF_OPEN_MAX_REQUESTS),
    };
    b.close(d);
    Some(breaker)
}

fn timeouts<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> RouteTimeouts {
    let flat = b.optional(d, &spec::TIMEOUT);
    let b = b.inner(d, &spec::TIMEOUTS).unwrap_or_else(Block::empty);
    let request = b.optional(d, &spec::REQUEST);
    same_setting(d, flat.as_ref(), request.as_ref());
    let timeouts = RouteTimeouts {
        connect: b.optional(d, &spec::CONNECT),
        request: request.or(flat),
        read: b.optional(d, &spec::READ),
        idle: b.optional(d, &spec::IDLE),
    };
    b.close(d);
    timeouts
}

/// Reports the flat spelling of `request-secs` when the nested one is present.
pub(super) fn same_setting(
    d: &mut Decoder<'_, '_>,
    flat: Option<&Setting<Duration>>,
    nested: Option<&Setting<Duration>>,
) {
    let place = |setting: Option<&Setting<Duration>>| setting.and_then(Setting::place);
    if let Some((flat, nested)) = place(flat).zip(place(nested)) {
        let message = "`timeout-secs` and `timeouts { request-secs }` are the same setting";
        let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, flat.max(nested), message);
        d.push(
            fault
                .label("again here")
                .related(flat.min(nested), "first here"),
        );
    }
}

fn rate_limit<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<RateLimit> {
    let b = b.inner(d, &spec::RATE_LIMIT)?;
    let place = b.place(d);
    let rate = rate(d, &b);
    let burst = b.optional(d, &spec::BURST);
    let key = b.setting(d, &spec::KEY);
    let observe_only = b.setting(d, &spec::OBSERVE_ONLY);
    let has_store = b.has(spec::STORE.path);
    let store = b.optional(d, &spec::STORE);
    let store_timeout = b.setting(d, &spec::STORE_TIMEOUT);
    if let Some(place) = store_timeout.place().filter(|_| !has_store) {
        let message = "`store-timeout-ms` requires a `store`";
        d.fault(DiagnosticCode::Conflict, place, message);
    }
    let is_slow = rate.as_ref().is_some_and(|rate| rate.period_secs != 1);
    if let Some(place) = store.as_ref().and_then(Setting::place).filter(|_| is_slow) {
        let message = "a `store` counts requests a second";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("leave `store` out, or write `requests-per-second`"));
    }
    b.close(d);
    let rate = rate?;
    let burst = burst.unwrap_or_else(|| {
        Setting::defaulted(match rate.period_secs {
            1 => rate.events.saturating_mul(10),
            _ => rate.events,
        })
    });
    Some(RateLimit {
        place,
        rate,
        burst,
        key,
        observe_only,
        store,
        store_timeout,
    })
}

/// `requests-per-second 5` or `rate "5/min"`, exactly one of them.
fn rate<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Setting<RequestRate>> {
    let is_present = b.has(spec::REQUESTS_PER_SECOND.path)
        || b.has(spec::RATE.path)
        || b.is_misread(spec::REQUESTS_PER_SECOND.path)
        || b.is_misread(spec::RATE.path);
    if !is_present {
        b.missing(d, spec::REQUESTS_PER_SECOND.name());
    }
    let per_second = b.optional(d, &spec::REQUESTS_PER_SECOND);
    let rate = b.optional(d, &spec::RATE);
    let places = per_second.as_ref().and_then(Setting::place);
    if let Some((first, second)) = places.zip(rate.as_ref().and_then(Setting::place)) {
        let message = "`requests-per-second` and `rate` are the same setting";
        let fault = Diagnostic::new(DiagnosticCode::RepeatedSetting, first.max(second), message);
        d.push(
            fault
                .label("again here")
                .related(first.min(second), "first here"),
        );
    }
    rate.or(per_second.map(|events| events.map(RequestRate::per_second)))
}

fn retry<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Retry> {
    let b = b.inner(d, &spec::RETRY)?;
    let on = b.list(d, &spec::ON);
    let first = on.first().and_then(Setting::place);
    let causes: Vec<RetryCause> = on.into_iter().map(|cause| cause.value).collect();
    let retry = Retry {
        place: b.place(d),
        attempts: b.setting(d, &spec::ATTEMPTS),
        on: match first {
            Some(place) => Setting::at(causes, place),
            None => Setting::defaulted(vec![RetryCause::ConnectFailure, RetryCause::Reset]),
        },
        budget_percent: b.setting(d, &spec::BUDGET_PERCENT),
        per_try_timeout: b.optional(d, &spec::PER_TRY_TIMEOUT),
    };
    b.close(d);
    Some(retry)
}
