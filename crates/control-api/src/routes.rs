//! The one table of routes.

use crate::route::{PREFIX, Route, row};
use crate::{admission, answer, api_key, openapi, org, project, setup, user};
use axum::extract::DefaultBodyLimit;
use axum::http::{Method, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};
use axum::{Json, Router};
use control_app::App;
use control_domain::Access;
use serde_json::Value;
use std::sync::Arc;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

const GET: Method = Method::GET;
const POST: Method = Method::POST;
const PATCH: Method = Method::PATCH;
const DELETE: Method = Method::DELETE;

/// Every route, by noun.
#[rustfmt::skip]
pub static ROUTES: &[Route] = &[
    row(POST, "/setup", Access::SetUp, || routes!(setup::set_up)).strict(),

    row(GET, "/users/me", Access::SignedIn, || routes!(user::me)),

    row(GET, "/orgs", Access::SignedIn, || routes!(org::list)),
    row(POST, "/orgs", Access::InstanceAdmin, || routes!(org::create)),
    row(GET, "/orgs/{org}", Access::READ_ORG, || routes!(org::view)),
    row(PATCH, "/orgs/{org}", Access::ADMINISTER, || routes!(org::rename)),

    row(GET, "/orgs/{org}/projects", Access::READ_ORG, || routes!(project::list)),
    row(POST, "/orgs/{org}/projects", Access::WRITE_PROJECTS, || routes!(project::create)),
    row(GET, "/projects/{project}", Access::READ_ORG, || routes!(project::view)),
    row(PATCH, "/projects/{project}", Access::WRITE_PROJECTS, || routes!(project::rename)),
    row(DELETE, "/projects/{project}", Access::ADMINISTER, || routes!(project::delete)),

    row(GET, "/api-keys", Access::API_KEYS, || routes!(api_key::list)),
    row(POST, "/api-keys", Access::API_KEYS, || routes!(api_key::create)),
    row(GET, "/api-keys/{api_key}", Access::API_KEYS, || routes!(api_key::view)),
    row(POST, "/api-keys/{api_key}/revoke", Access::API_KEYS, || routes!(api_key::revoke)),
    row(DELETE, "/api-keys/{api_key}", Access::API_KEYS, || routes!(api_key::delete)),
];

/// The interface under `/api/v1`, with its own description.
pub fn router(app: &Arc<App>) -> Router {
    let mut api = OpenApiRouter::with_openapi(openapi::base());
    for row in ROUTES {
        let (schemas, paths, methods) = (row.handler)();
        let methods = methods
            .layer(DefaultBodyLimit::max(row.max_body_bytes))
            .route_layer(from_fn_with_state((Arc::clone(app), row), admission::admit));
        api = api.routes((schemas, paths, methods));
    }
    let api = OpenApiRouter::new()
        .nest(PREFIX, api)
        .with_state(Arc::clone(app));
    let (router, document) = api.split_for_parts();
    let document = Arc::new(openapi::complete(&document, ROUTES));
    router
        .route(
            "/api/v1/openapi.json",
            get(async move || Json(Value::clone(&document))),
        )
        // Not a fallback: merged with other routers, that would be theirs or ours for all paths.
        .route("/api/v1/{*path}", any(async || StatusCode::NOT_FOUND))
        .layer(from_fn_with_state(Arc::clone(app), answer::answer))
}
