//! The `cache` blocks of routes and of the top level.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use http::Method;
use proxy_model::registry::policies::cache as spec;
use proxy_model::{Cache, Model, Place, Route, RouteCache, Setting, show_size};

pub(super) fn route_cache<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<RouteCache> {
    let b = b.inner(d, &spec::ROUTE_CACHE)?;
    let cache = RouteCache {
        place: b.place(d),
        ttl: b.optional(d, &spec::TTL),
        statuses: statuses(d, &b),
        key_headers: b.list(d, &spec::KEY_HEADERS),
        ignore_query: b.list(d, &spec::IGNORE_QUERY),
        stale_while_revalidate: b.setting(d, &spec::STALE_WHILE_REVALIDATE),
        stale_if_error: b.setting(d, &spec::STALE_IF_ERROR),
        collapse: b.setting(d, &spec::COLLAPSE),
        client_directives: b.setting(d, &spec::CLIENT_DIRECTIVES),
        cache_status: b.setting(d, &spec::CACHE_STATUS),
    };
    b.close(d);
    Some(cache)
}

fn statuses<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Setting<Vec<u16>> {
    let list = b.list(d, &spec::STATUSES);
    for status in &list {
        if let (206 | 304, Some(place)) = (status.value, status.place()) {
            let message = format!("a response with {} is a part of another one", status.value);
            let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
            d.push(fault.help("leave it out: ranges and 304 are answered from stored responses"));
        }
    }
    let first = list.first().and_then(Setting::place);
    match first {
        Some(place) => Setting::at(list.into_iter().map(|one| one.value).collect(), place),
        None => Setting::defaulted(RouteCache::USUAL_STATUSES.to_vec()),
    }
}

/// The bounds of the store.
pub(in crate::decode) fn cache<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Cache {
    Cache {
        max_bytes: b.setting(d, &spec::MAX_BYTES),
        max_object_bytes: b.setting(d, &spec::MAX_OBJECT_BYTES),
    }
}

/// Reports caches that do not fit: into the memory limit, or to other settings of their routes.
pub(in crate::decode) fn check(d: &mut Decoder<'_, '_>, model: &Model) {
    let mut routes = model.routes.iter();
    let Some(first) = routes.find_map(|route| route.policies.cache.as_ref()) else {
        return;
    };
    check_bounds(d, model, first.place);
    for route in &model.routes {
        if let Some(cache) = &route.policies.cache {
            check_route(d, route, cache.place);
        }
    }
}

fn check_bounds(d: &mut Decoder<'_, '_>, model: &Model, used_at: Place) {
    let Cache {
        max_bytes,
        max_object_bytes,
    } = &model.cache;
    let most = **max_bytes / 8;
    if **max_object_bytes > most {
        let place = max_object_bytes.place().or(max_bytes.place());
        let message = format!(
            "a stored body of `max-object-bytes` has no room: at most an eighth of `max-bytes`, {}",
            show_size(most)
        );
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place.unwrap_or(used_at), message);
        d.push(fault.help("write a larger `max-bytes`, or a smaller `max-object-bytes`"));
    }
    let Some(limit) = &model.limits.max_memory_bytes else {
        return;
    };
    if **max_bytes > **limit / 2 {
        let place = max_bytes.place().unwrap_or(used_at);
        let message = format!(
            "the cache takes {}, more than half of `max-memory-bytes`",
            show_size(**max_bytes)
        );
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        let fault = match limit.place() {
            Some(limit) => fault.related(limit, "the limit is here"),
            None => fault,
        };
        d.push(fault.help("write a smaller `cache { max-bytes }`, or a larger limit"));
    }
}

fn check_route(d: &mut Decoder<'_, '_>, route: &Route, place: Place) {
    if let Some(agent) = route.agents.first() {
        let message = "agents decide about each response, and a stored one is not shown to them";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        let fault = match agent.place() {
            Some(agent) => fault.related(agent, "agents here"),
            None => fault,
        };
        d.push(fault.help("leave `cache` out, or write a route without agents for these paths"));
    }
    let methods = &route.matches.methods;
    let is_stored = |method: &Setting<Method>| [Method::GET, Method::HEAD].contains(method);
    if let Some(first) = methods.first().filter(|_| !methods.iter().any(is_stored)) {
        let message = "`cache` has no effect: the route matches neither GET nor HEAD";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        let fault = match first.place() {
            Some(method) => fault.related(method, "its methods"),
            None => fault,
        };
        d.push(fault.help("leave `cache` out, or add `GET` to the methods"));
    }
    let buffered = &route.policies.buffer_responses;
    if let Some(buffered) = buffered.place().filter(|_| **buffered) {
        let message = "`cache` buffers responses already";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, buffered, message);
        d.push(
            fault
                .related(place, "cached here")
                .help("leave `buffer-responses` out"),
        );
    }
}
