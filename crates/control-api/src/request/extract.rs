//! Extractors of handlers.

use crate::request::body::{self, BodyLimit};
use crate::request::credential;
use crate::response::problem::Problem;
use crate::response::wording::reworded;
use crate::route::noun;
use axum::body::Bytes;
use axum::extract::{self, FromRequest, FromRequestParts, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, header};
use control_app::{App, Call, Error, MAX_SMALL_BYTES, Visit};
use control_auth::Secret;
use control_http::{CorrelationId, SessionCookie, browser, client_ip, cookie};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use std::sync::Arc;
use uuid::Uuid;
use uuid::fmt::Hyphenated;

/// The [`Call`] that admission created.
#[derive(Clone, Debug)]
pub(crate) struct Caller(pub(crate) Call);

impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let call = parts.extensions.get::<Call>().cloned();
        call.map(Self).ok_or_else(|| Error::Unauthenticated.into())
    }
}

/// The [`Visit`] that admission created for a request without a credential.
#[derive(Clone, Debug)]
pub(crate) struct Visitor(pub(crate) Visit);

impl<S: Sync> FromRequestParts<S> for Visitor {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let visit = parts.extensions.get::<Visit>().cloned();
        visit.map(Self).ok_or_else(|| Error::Unauthenticated.into())
    }
}

/// Creates the visit of a request without a credential.
pub(crate) fn visit(now: Timestamp, request: &Request) -> Visit {
    visit_with(now, request.headers(), request.extensions())
}

/// Creates a visit from header fields and extensions.
pub(crate) fn visit_with(now: Timestamp, headers: &HeaderMap, extensions: &Extensions) -> Visit {
    let scheme = extensions.get::<SessionCookie>().copied();
    let known = cookie(headers, scheme.unwrap_or_default().browser_name());
    let id = extensions.get::<CorrelationId>();
    Visit {
        client_ip: client_ip(extensions),
        browser: browser(headers),
        known_browser: known.map(Secret::presented),
        now,
        correlation_id: id.map(|CorrelationId(id)| id.clone()).unwrap_or_default(),
    }
}

/// A JSON body; an empty body counts as an object without fields, with and without `Content-Type`.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned + Send + 'static> FromRequest<Arc<App>> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &Arc<App>) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let is_json = is_json(&parts.headers);
        if !is_json && parts.headers.contains_key(header::CONTENT_TYPE) {
            return Err(Problem::not_json());
        }
        if is_encoded(&parts.headers) {
            return Err(Problem::encoded());
        }
        let limit = parts.extensions.get::<BodyLimit>().copied();
        let limit = limit.unwrap_or(BodyLimit(0));
        let bytes = limit.read(&parts, body).await?;
        let call = parts.extensions.get::<Call>();
        if let Some(call) = call {
            credential::check_again(app, call, &parts).await?;
        }
        let bytes = if bytes.is_empty() {
            Bytes::from_static(b"{}")
        } else if is_json {
            bytes
        } else {
            return Err(Problem::not_json());
        };
        if bytes.len() <= MAX_SMALL_BYTES {
            return Ok(Self(body::decode(&bytes)?));
        }
        let admitted = parts.extensions.get();
        let parsed = app.parse(admitted, move || body::decode(&bytes));
        Ok(Self(parsed.await??))
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let essence = kind.split(';').next().unwrap_or_default().trim();
    essence.eq_ignore_ascii_case("application/json")
}

fn is_encoded(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    codings.any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"))
}

/// Identifiers in the path, each a UUID with hyphens.
#[derive(Debug)]
pub(crate) struct Path<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = RawPathParams::from_request_parts(parts, state).await;
        let found = found.map_err(|_| Problem::bad_path("an identifier is not UTF-8"))?;
        let wrong = found.iter().find(|(_, text)| !is_hyphenated(text));
        if let Some((name, _)) = wrong {
            let reason = format!("the {} is not a UUID", noun(name));
            return Err(Problem::bad_path(&reason));
        }
        let read = extract::Path::from_request_parts(parts, state).await;
        let extract::Path(value) =
            read.map_err(|_| Problem::bad_path("an identifier is not a UUID"))?;
        Ok(Self(value))
    }
}

/// Other spellings of a UUID are refused: each resource has exactly one URL.
fn is_hyphenated(text: &str) -> bool {
    text.len() == Hyphenated::LENGTH && Uuid::try_parse(text).is_ok()
}

/// Query parameters.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        // PostgreSQL rejects text with NUL.
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(Problem::bad_query("a value has the character NUL"));
        }
        let query = extract::Query::try_from_uri(&parts.uri);
        let extract::Query(value) = query.map_err(|rejection| {
            let text = rejection.body_text();
            let reason = text.strip_prefix("Failed to deserialize query string: ");
            Problem::bad_query(&reworded(reason.unwrap_or(&text)))
        })?;
        Ok(Self(value))
    }
}

/// Versions in `If-Match`; `None` without the field, or for `*`. A foreign tag matches no version.
pub(crate) fn if_match(headers: &HeaderMap) -> Option<Vec<i64>> {
    let lines = headers.get_all(header::IF_MATCH).iter();
    let lines: Vec<&str> = lines
        .map(|line| line.to_str().unwrap_or_default())
        .collect();
    if lines.is_empty() || lines.iter().any(|line| line.trim() == "*") {
        return None;
    }
    let tags = lines.iter().flat_map(|line| line.split(','));
    Some(tags.filter_map(version).collect())
}

/// Version in a tag; a suffix after a hyphen is ignored.
fn version(tag: &str) -> Option<i64> {
    let quoted = tag.trim().strip_prefix('"')?.strip_suffix('"')?;
    let version = quoted
        .split_once('-')
        .map_or(quoted, |(version, _)| version);
    let number: i64 = version.parse().ok()?;
    // Refuses non-canonical numbers such as `+1` and `01`.
    (number.to_string() == version).then_some(number)
}

/// Tags in all lines of `If-None-Match`, without quotes.
pub(crate) fn if_none_match(headers: &HeaderMap) -> Vec<String> {
    let lines = headers.get_all(header::IF_NONE_MATCH).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let tags = lines.flat_map(|line| line.split(',')).map(str::trim);
    let tags = tags.map(|tag| tag.trim_start_matches("W/").trim_matches('"'));
    tags.map(str::to_owned).collect()
}
