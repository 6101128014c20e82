//! Paths of the admin interface and their handlers.

mod page;

use crate::answer::{Refused, json, json_bytes, ready_or_unavailable};
use crate::endpoints::page::explanation::ExplainQuery;
use crate::state::{AdminState, BuildInfo};
use crate::{agents, cache, explain, stats, target_patch, upstreams};
use axum::Router;
use axum::extract::rejection::{BytesRejection, PathRejection, QueryRejection};
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, patch, post};
use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, VARY};
use http::{HeaderMap, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_telemetry::Format;
use serde_json::{Value, json as object};
use std::sync::Arc;

/// Maximum size of a request body.
const MAX_BODY_BYTES: usize = 64 * 1024;

type AdminRequest = State<Arc<AdminState>>;

/// Lists each path with its handler. HEAD is answered like GET.
fn endpoints() -> [(&'static str, MethodRouter<Arc<AdminState>>); 16] {
    [
        ("/", get(show_page)),
        (
            "/health",
            get(
                |State(state): AdminRequest| async move { json(&state.sources.lifecycle.health()) },
            ),
        ),
        (
            "/ready",
            get(|State(state): AdminRequest| async move { readiness(&state) }),
        ),
        (
            "/status",
            get(
                |State(state): AdminRequest| async move { json(&state.sources.lifecycle.status()) },
            ),
        ),
        (
            "/metrics",
            get(
                |State(state): AdminRequest, headers: HeaderMap| async move {
                    metrics(&state, &headers)
                },
            ),
        ),
        (
            "/admin/upstreams",
            get(|State(state): AdminRequest| async move {
                let snapshot = state.sources.registry.snapshot();
                json(&upstreams::document(&state.plan.load().plan, &snapshot))
            }),
        ),
        (
            "/admin/upstreams/{name}/targets/{address}",
            patch(change_target),
        ),
        (
            "/admin/agents",
            get(|State(state): AdminRequest| async move {
                let snapshot = state.sources.registry.snapshot();
                json(&agents::document(&state.plan.load().plan, &snapshot))
            }),
        ),
        (
            "/admin/stats",
            get(|State(state): AdminRequest| async move { json(&stats::document(&state)) }),
        ),
        (
            "/admin/version",
            get(|State(state): AdminRequest| async move { json(&version(&state.sources.build)) }),
        ),
        (
            "/admin/routes",
            get(|State(state): AdminRequest| async move { json_bytes(state.plan.load().routes()) }),
        ),
        ("/admin/explain", post(explain_request)),
        ("/admin/cache", get(cache_figures)),
        ("/admin/cache/purge", post(purge_cache)),
        ("/admin/recording", get(recording)),
        (
            "/admin/config",
            get(|State(state): AdminRequest| async move { json_bytes(state.plan.load().config()) }),
        ),
    ]
}

fn readiness(state: &AdminState) -> Response {
    let (ready, document) = state.sources.lifecycle.readiness();
    ready_or_unavailable(ready, &document)
}

/// Creates the router. Unknown paths and methods get error responses.
pub(crate) fn router(state: Arc<AdminState>) -> Router {
    let refuse = |reason| Refused(Problem::new(reason, Detail::None));
    let mut router = Router::new();
    for (path, answered) in endpoints() {
        router = router.route(path, answered);
    }
    router
        .fallback(move || async move { refuse(Reason::RouteNotFound) })
        .method_not_allowed_fallback(move || async move { refuse(Reason::MethodNotAllowed) })
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
        .with_state(state)
}

async fn show_page(
    State(state): AdminRequest,
    query: Result<Query<ExplainQuery>, QueryRejection>,
) -> Result<Response, Refused> {
    let Query(query) = query.map_err(|rejection| {
        let detail = Detail::text(rejection.body_text());
        Refused(Problem::new(Reason::AdminBodyInvalid, detail))
    })?;
    Ok(if query.is_present() {
        query.show(&state)
    } else {
        page::show(&state, query.reload.is_some())
    })
}

async fn change_target(
    State(state): AdminRequest,
    path: Result<Path<(String, String)>, PathRejection>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refused> {
    // Escapes that do not decode to UTF-8 match no target.
    let Path((upstream, address)) =
        path.map_err(|_| Refused(Problem::new(Reason::AdminTargetUnknown, Detail::None)))?;
    let body = body.map_err(|rejection| body_problem(&rejection))?;
    let entry = target_patch::apply(&state, &upstream, &address, &body).map_err(Refused)?;
    Ok(json(&entry))
}

async fn explain_request(
    State(state): AdminRequest,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refused> {
    let body = body.map_err(|rejection| body_problem(&rejection))?;
    let document = explain::document(&state.plan.load().plan, &body).map_err(Refused)?;
    Ok(json(&document))
}

async fn cache_figures(State(state): AdminRequest) -> Response {
    json(&cache::document(&state))
}

async fn purge_cache(
    State(state): AdminRequest,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Refused> {
    let body = body.map_err(|rejection| body_problem(&rejection))?;
    let document = cache::purge(&state, &body).map_err(Refused)?;
    Ok(json(&document))
}

/// Describes a body that is too large or incomplete.
fn body_problem(rejection: &BytesRejection) -> Refused {
    let limit = u64::try_from(MAX_BODY_BYTES).unwrap_or(u64::MAX);
    if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
        let detail = Detail::LimitAtLeast {
            current: limit + 1,
            limit,
        };
        return Refused(Problem::new(Reason::BodySizeLimit, detail).without_setting());
    }
    let detail = Detail::text("the body is malformed or breaks off");
    Refused(Problem::new(Reason::AdminBodyInvalid, detail))
}

fn metrics(state: &AdminState, headers: &HeaderMap) -> Response {
    let accept = headers.get_all(ACCEPT).iter();
    let format = Format::accepted(accept.filter_map(|value| value.to_str().ok()));
    let page = state.sources.lifecycle.metrics(format);
    let fields = [(CONTENT_TYPE, format.content_type()), (VARY, "accept")];
    (fields, page).into_response()
}

/// Returns the recorded requests as lines of JSON, oldest first.
async fn recording(State(state): AdminRequest) -> Result<Response, Refused> {
    let lines = state.sources.recording.lines();
    let lines = lines.ok_or_else(|| {
        let detail = Detail::text("no request is recorded; add `recording` to `observability`");
        Refused(Problem::new(Reason::AdminTargetUnknown, detail))
    })?;
    let kind = [(CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, lines).into_response())
}

fn version(build: &BuildInfo) -> Value {
    let BuildInfo {
        name,
        version,
        commit,
        built_at,
        rustc,
    } = build;
    object!({
        "name": name,
        "version": version,
        "commit": commit,
        "built_at": built_at,
        "rustc": rustc,
    })
}
