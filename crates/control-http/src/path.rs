//! Identifiers in the path of a request.

use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::request::Parts;
use control_app::NamedTenant;
use std::str::FromStr;

/// The identifier `name` in the path.
pub async fn id_in_path<I: FromStr>(parts: &mut Parts, name: &str) -> Option<I> {
    let parameters = RawPathParams::from_request_parts(parts, &()).await.ok()?;
    let (_, text) = parameters.iter().find(|(own, _)| *own == name)?;
    text.parse().ok()
}

/// The identifiers in the path that determine its resource's tenant.
pub async fn named_tenant(parts: &mut Parts) -> NamedTenant {
    NamedTenant {
        org: id_in_path(parts, "org").await,
        project: id_in_path(parts, "project").await,
        api_key: id_in_path(parts, "api_key").await,
    }
}
