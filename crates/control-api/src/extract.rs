//! What handlers take from a request.

use crate::problem::Problem;
use axum::body::Bytes;
use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use control_app::{Call, Error};
use serde::de::DeserializeOwned;

/// The actor, the time and the rest of [`Call`], as admission made it.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Call);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let call = parts.extensions.get::<Call>().cloned();
        call.map(Self).ok_or_else(|| Error::Unauthenticated.into())
    }
}

/// A JSON body. No body at all counts as an object without fields.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        let is_json = is_json(request.headers());
        if !is_json && request.headers().contains_key(header::CONTENT_TYPE) {
            return Err(Problem::not_json());
        }
        let bytes = Bytes::from_request(request, state).await;
        let bytes = bytes.map_err(|rejection| Problem::of_status(rejection.status()))?;
        let bytes = match bytes.is_empty() {
            _ if is_json => bytes,
            true => Bytes::from_static(b"{}"),
            false => return Err(Problem::not_json()),
        };
        let mut deserializer = serde_json::Deserializer::from_slice(&bytes);
        let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
            let path = error.path().to_string();
            wrong_body(&path, error.inner())
        })?;
        let end = deserializer.end();
        end.map_err(|error| wrong_body(".", &error))?;
        Ok(Self(value))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn wrong_body(path: &str, error: &serde_json::Error) -> Problem {
    if !error.is_data() {
        return Problem::unreadable("the body is not JSON");
    }
    let text = error.to_string();
    let reason = text.split(" at line ").next().unwrap_or_default();
    // A missing or unknown field is named by the message only, between backticks.
    let named = reason
        .split('`')
        .nth(1)
        .filter(|_| reason.contains(" field `"));
    let field = match (path, named) {
        (".", Some(name)) => name.to_owned(),
        (".", None) => "body".to_owned(),
        (path, Some(name)) if !path.ends_with(name) => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    };
    Problem::invalid(&field, reason)
}

/// The parameters behind `?`.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = axum::extract::Query::try_from_uri(&parts.uri);
        let axum::extract::Query(value) =
            query.map_err(|rejection| Problem::bad_query(&rejection.body_text()))?;
        Ok(Self(value))
    }
}

/// The versions in `If-Match`; `None` for no field, or `*`. A tag that is not ours matches nothing.
pub(crate) fn if_match(headers: &HeaderMap) -> Option<Vec<i64>> {
    let value = headers.get(header::IF_MATCH)?;
    let text = value.to_str().unwrap_or_default();
    if text.trim() == "*" {
        return None;
    }
    Some(text.split(',').filter_map(version).collect())
}

/// What stands behind a hyphen says more than the version, and is not compared.
fn version(tag: &str) -> Option<i64> {
    let quoted = tag.trim().strip_prefix('"')?.strip_suffix('"')?;
    let version = quoted
        .split_once('-')
        .map_or(quoted, |(version, _)| version);
    version.parse().ok()
}

/// The tags in `If-None-Match`, without quotes.
pub(crate) fn if_none_match(headers: &HeaderMap) -> Vec<String> {
    let value = headers.get(header::IF_NONE_MATCH);
    let text = value.and_then(|value| value.to_str().ok());
    let tags = text.unwrap_or_default().split(',').map(str::trim);
    let tags = tags.map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
    tags.map(str::to_owned).collect()
}
