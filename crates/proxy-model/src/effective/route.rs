//! The settings of a route.

use crate::compression::Compression;
use crate::effective::credentials;
use crate::effective::list::{List, path, plain, text};
use crate::listener::ErrorPage;
use crate::matches::Matches;
use crate::model::Model;
use crate::policies::{
    Cors, HeaderEdits, HeaderField, Policies, RateLimit, Retry, Rewrite, RouteCache, RouteTimeouts,
    Shadow,
};
use crate::registry::policies::access::{ALLOW, ALLOW_FILE, DENY, DENY_FILE};
use crate::registry::policies::error_pages as pages_spec;
use crate::registry::policies::{cache as cache_spec, cors as cors_spec, rewrite as rewrite_spec};
use crate::registry::routes::answers as answer_spec;
use crate::registry::{
    circuit_breaker as breaker_spec, matches as match_spec, policies as policy_spec, routes as spec,
};
use crate::route::{CircuitBreaker, FixedResponse, Redirect, Route, Service, StaticFiles};
use crate::secret::{redacted_field, redacted_header, redacted_parameter};
use proxy_routing::PathPattern;
use serde_json::Value;

pub(super) fn route(list: &mut List, model: &Model, route: &Route) {
    let Route {
        id: _,
        place: _,
        priority,
        listeners,
        matches,
        service,
        form,
        policies,
        circuit_breaker,
        agents,
    } = route;
    list.put(&spec::PRIORITY, priority, plain);
    list.put_all(&spec::LISTENERS, listeners, text);
    list.within("matches", |list| conditions(list, matches));
    match service {
        Service::Upstream(index) => list.put(&spec::UPSTREAM, index, |index| {
            model
                .upstream(*index)
                .map(|upstream| upstream.name.clone())
                .into()
        }),
        Service::Builtin(handler) => list.put(&spec::BUILTIN_HANDLER, handler, text),
        Service::Static(files) => list.within("static-files", |list| static_files(list, files)),
        Service::Redirect(redirect) => list.within("redirect", |list| {
            self::redirect(list, redirect);
        }),
        Service::Respond(response) => list.within("respond", |list| respond(list, response)),
    }
    // The default form has no word in the language.
    if form.place().is_some() {
        list.put(&spec::SERVICE_TYPE, form, |form| match service {
            Service::Upstream(_) | Service::Redirect(_) | Service::Respond(_) => text(form),
            Service::Builtin(_) => "builtin".into(),
            Service::Static(_) => "static".into(),
        });
    }
    list.within("policies", |list| self::policies(list, model, policies));
    if let Some(breaker) = circuit_breaker {
        list.within("circuit-breaker", |list| self::breaker(list, breaker));
    }
    list.put_all(&spec::AGENTS, agents, |index| {
        model.agent(*index).map(|agent| agent.name.clone()).into()
    });
}

fn conditions(list: &mut List, matches: &Matches) {
    let Matches {
        hosts,
        paths,
        headers,
        methods,
        query_params,
    } = matches;
    list.put_all(&match_spec::HOST, hosts, text);
    for pattern in paths {
        let text = |pattern: &PathPattern| pattern.as_str().into();
        match pattern.setting() {
            "path" => list.put(&match_spec::PATH, pattern, text),
            "path-prefix" => list.put(&match_spec::PATH_PREFIX, pattern, text),
            _ => list.put(&match_spec::PATH_REGEX, pattern, text),
        }
    }
    list.put_all(&match_spec::HEADER, headers, |header| {
        redacted_header(header).into()
    });
    list.put_all(&match_spec::METHOD, methods, text);
    list.put_all(&match_spec::QUERY_PARAM, query_params, |parameter| {
        redacted_parameter(parameter).into()
    });
}

fn static_files(list: &mut List, files: &StaticFiles) {
    let StaticFiles {
        place: _,
        root,
        index,
        fallback,
        precompressed,
    } = files;
    list.put(&spec::STATIC_ROOT, root, path);
    list.put(&spec::STATIC_INDEX, index, text);
    list.put_any(&spec::STATIC_FALLBACK, fallback.as_ref(), text);
    list.put(&spec::STATIC_PRECOMPRESSED, precompressed, plain);
}

fn redirect(list: &mut List, redirect: &Redirect) {
    let Redirect {
        place: _,
        to,
        replace_prefix,
        trailing_slash,
        status,
    } = redirect;
    list.put_any(&answer_spec::REDIRECT_TO, to.as_ref(), text);
    list.put_any(
        &answer_spec::REDIRECT_REPLACE_PREFIX,
        replace_prefix.as_ref(),
        text,
    );
    list.put_any(
        &answer_spec::REDIRECT_TRAILING_SLASH,
        trailing_slash.as_ref(),
        text,
    );
    list.put(&answer_spec::REDIRECT_STATUS, status, |status| {
        status.code().to_string().into()
    });
}

fn respond(list: &mut List, response: &FixedResponse) {
    let FixedResponse {
        place: _,
        status,
        body,
        content_type,
    } = response;
    list.put(&answer_spec::RESPOND_STATUS, status, plain);
    list.put_any(&answer_spec::RESPOND_BODY, body.as_ref(), text);
    list.put(&answer_spec::RESPOND_CONTENT_TYPE, content_type, |value| {
        String::from_utf8_lossy(value.as_bytes()).into()
    });
}

fn error_pages(list: &mut List, pages: &[ErrorPage]) {
    list.error_pages(
        pages,
        &pages_spec::PAGE_STATUS,
        &pages_spec::PAGE_FILE,
        &pages_spec::PAGE_HTML,
    );
}

fn policies(list: &mut List, model: &Model, policies: &Policies) {
    let Policies {
        timeouts,
        max_body_size,
        access,
        basic_auth,
        jwt,
        error_pages,
        cors,
        rate_limit,
        request_headers,
        response_headers,
        path_policy,
        buffer_requests,
        buffer_responses,
        retry,
        compression,
        rewrite,
        shadow,
        cache,
    } = policies;
    list.within("timeouts", |list| times(list, timeouts));
    list.put_any(&policy_spec::MAX_BODY_SIZE, max_body_size.as_ref(), plain);
    list.access(access, &ALLOW, &DENY, &ALLOW_FILE, &DENY_FILE);
    if let Some(auth) = basic_auth {
        list.within("basic-auth", |list| credentials::basic_auth(list, auth));
    }
    if let Some(auth) = jwt {
        list.within("jwt", |list| credentials::jwt(list, model, auth));
    }
    list.within("error-pages", |list| self::error_pages(list, error_pages));
    if let Some(cors) = cors {
        list.within("cors", |list| self::cors(list, cors));
    }
    if let Some(limit) = rate_limit {
        list.within("rate-limit", |list| self::rate_limit(list, limit));
    }
    list.within("request-headers", |list| {
        let HeaderEdits { remove, set, add } = request_headers;
        list.put_all(&policy_spec::REMOVE_REQUEST, remove, text);
        list.put_all(&policy_spec::SET_REQUEST, set, header);
        list.put_all(&policy_spec::ADD_REQUEST, add, header);
    });
    list.within("response-headers", |list| {
        let HeaderEdits { remove, set, add } = response_headers;
        list.put_all(&policy_spec::REMOVE_RESPONSE, remove, text);
        list.put_all(&policy_spec::SET_RESPONSE, set, header);
        list.put_all(&policy_spec::ADD_RESPONSE, add, header);
    });
    list.put_any(&policy_spec::PATH_POLICY, path_policy.as_ref(), text);
    list.put(&policy_spec::BUFFER_REQUESTS, buffer_requests, plain);
    list.put(&policy_spec::BUFFER_RESPONSES, buffer_responses, plain);
    if let Some(retry) = retry {
        list.within("retry", |list| self::retry(list, retry));
    }
    if let Some(compression) = compression {
        list.within("compression", |list| self::compression(list, compression));
    }
    if let Some(rewrite) = rewrite {
        list.within("rewrite", |list| self::rewrite(list, rewrite));
    }
    if let Some(shadow) = shadow {
        list.within("shadow", |list| self::shadow(list, model, shadow));
    }
    if let Some(cache) = cache {
        list.within("cache", |list| self::cache(list, cache));
    }
}

fn cors(list: &mut List, cors: &Cors) {
    let Cors {
        place: _,
        allow_origins,
        allow_methods,
        allow_headers,
        expose_headers,
        allow_credentials,
        max_age,
    } = cors;
    list.put_all(&cors_spec::ALLOW_ORIGINS, allow_origins, text);
    list.put_all(&cors_spec::ALLOW_METHODS, allow_methods, text);
    list.put_all(&cors_spec::ALLOW_HEADERS, allow_headers, text);
    list.put_all(&cors_spec::EXPOSE_HEADERS, expose_headers, text);
    list.put(&cors_spec::ALLOW_CREDENTIALS, allow_credentials, plain);
    list.time(&cors_spec::MAX_AGE, max_age);
}

fn rewrite(list: &mut List, rewrite: &Rewrite) {
    let Rewrite {
        place: _,
        strip_prefix,
        replace_prefix,
        path,
        captures,
        location,
        cookies,
    } = rewrite;
    list.put_any(
        &rewrite_spec::REWRITE_STRIP_PREFIX,
        strip_prefix.as_ref(),
        |prefix| prefix.from.as_str().into(),
    );
    list.put_any(
        &rewrite_spec::REWRITE_REPLACE_PREFIX,
        replace_prefix.as_ref(),
        text,
    );
    list.put_any(&rewrite_spec::REWRITE_PATH, path.as_ref(), text);
    list.put_any(&rewrite_spec::REWRITE_CAPTURES, captures.as_ref(), text);
    list.put(&rewrite_spec::REWRITE_LOCATION, location, plain);
    list.put(&rewrite_spec::REWRITE_COOKIES, cookies, plain);
}

fn times(list: &mut List, timeouts: &RouteTimeouts) {
    let RouteTimeouts {
        connect,
        request,
        read,
        idle,
    } = timeouts;
    list.any_time(&policy_spec::CONNECT, connect.as_ref());
    list.any_time(&policy_spec::REQUEST, request.as_ref());
    list.any_time(&policy_spec::READ, read.as_ref());
    list.any_time(&policy_spec::IDLE, idle.as_ref());
}

fn rate_limit(list: &mut List, limit: &RateLimit) {
    let RateLimit {
        place: _,
        rate,
        burst,
        key,
        observe_only,
        store,
        store_timeout,
    } = limit;
    if rate.period_secs == 1 {
        list.put(&policy_spec::REQUESTS_PER_SECOND, rate, |rate| {
            rate.events.into()
        });
    } else {
        list.put(&policy_spec::RATE, rate, text);
    }
    list.put(&policy_spec::BURST, burst, plain);
    list.put(&policy_spec::KEY, key, text);
    list.put(&policy_spec::OBSERVE_ONLY, observe_only, plain);
    list.put_any(&policy_spec::STORE, store.as_ref(), text);
    list.time(&policy_spec::STORE_TIMEOUT, store_timeout);
}

fn header(field: &HeaderField) -> Value {
    redacted_field(&field.name, &field.value).into()
}

fn retry(list: &mut List, retry: &Retry) {
    let Retry {
        place: _,
        attempts,
        on,
        budget_percent,
        per_try_timeout,
    } = retry;
    list.put(&policy_spec::ATTEMPTS, attempts, plain);
    list.put(&policy_spec::ON, on, |causes| {
        causes.iter().map(|cause| cause.name()).collect()
    });
    list.put(&policy_spec::BUDGET_PERCENT, budget_percent, plain);
    list.any_time(&policy_spec::PER_TRY_TIMEOUT, per_try_timeout.as_ref());
}

fn shadow(list: &mut List, model: &Model, shadow: &Shadow) {
    let Shadow {
        place: _,
        upstream,
        percent,
    } = shadow;
    list.put(&policy_spec::SHADOW_UPSTREAM, upstream, |index| {
        let upstream = model.upstream(*index);
        upstream.map(|upstream| upstream.name.clone()).into()
    });
    list.put(&policy_spec::SHADOW_PERCENT, percent, plain);
}

fn compression(list: &mut List, compression: &Compression) {
    let Compression {
        place: _,
        codings,
        types,
        min_size,
        gzip_level,
        brotli_level,
        zstd_level,
    } = compression;
    list.put(&policy_spec::COMPRESSION_CODINGS, codings, |codings| {
        codings.iter().map(|coding| coding.name()).collect()
    });
    list.put(&policy_spec::COMPRESSION_TYPES, types, |types| {
        types.iter().map(text).collect()
    });
    list.put(&policy_spec::COMPRESSION_MIN_SIZE, min_size, plain);
    list.put(&policy_spec::GZIP_LEVEL, gzip_level, plain);
    list.put(&policy_spec::BROTLI_LEVEL, brotli_level, plain);
    list.put(&policy_spec::ZSTD_LEVEL, zstd_level, plain);
}

fn cache(list: &mut List, cache: &RouteCache) {
    let RouteCache {
        place: _,
        ttl,
        statuses,
        key_headers,
        ignore_query,
        stale_while_revalidate,
        stale_if_error,
        collapse,
        client_directives,
        cache_status,
    } = cache;
    list.any_time(&cache_spec::TTL, ttl.as_ref());
    list.put(&cache_spec::STATUSES, statuses, |statuses| {
        statuses.iter().copied().collect()
    });
    list.put_all(&cache_spec::KEY_HEADERS, key_headers, text);
    list.put_all(&cache_spec::IGNORE_QUERY, ignore_query, text);
    list.time(&cache_spec::STALE_WHILE_REVALIDATE, stale_while_revalidate);
    list.time(&cache_spec::STALE_IF_ERROR, stale_if_error);
    list.time(&cache_spec::COLLAPSE, collapse);
    list.put(&cache_spec::CLIENT_DIRECTIVES, client_directives, plain);
    list.put(&cache_spec::CACHE_STATUS, cache_status, plain);
}

fn breaker(list: &mut List, breaker: &CircuitBreaker) {
    let CircuitBreaker {
        place: _,
        failure_threshold,
        timeout,
        success_threshold,
        half_open_max_requests,
    } = breaker;
    list.put(&breaker_spec::FAILURE_THRESHOLD, failure_threshold, plain);
    list.time(&breaker_spec::TIMEOUT, timeout);
    list.put(&breaker_spec::SUCCESS_THRESHOLD, success_threshold, plain);
    list.put(
        &breaker_spec::HALF_OPEN_MAX_REQUESTS,
        half_open_max_requests,
        plain,
    );
}
