//! `Idempotency-Key`: a request that is sent twice is executed once.

use crate::request::body::BodyLimit;
use crate::request::credential;
use crate::response::problem::Problem;
use crate::route::{PREFIX, Route};
use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control_app::{App, Call, NamedTenant, Reply, Reservation};
use control_auth::sha256;
use uuid::Uuid;

pub(crate) const HEADER: HeaderName = HeaderName::from_static("idempotency-key");
/// Maximum size of a stored body: larger ones, kept for 24 hours, could fill the database.
const MAX_KEPT_BYTES: usize = 8 * 1024;
const MAX_KEY_BYTES: usize = 255;

/// Runs the handler, or repeats the stored response.
pub(crate) async fn run(
    app: &App,
    route: &Route,
    named: NamedTenant,
    mut call: Call,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let key = request.headers().get(HEADER).cloned();
    let Some(key) = key.filter(|_| route.is_repeatable()) else {
        request.extensions_mut().insert(call);
        return Ok(next.run(request).await);
    };
    if 1 < request.headers().get_all(HEADER).iter().count() {
        return Err(Problem::bad_header("idempotency-key", "occurs twice"));
    }
    if key.is_empty() || MAX_KEY_BYTES < key.len() {
        return Err(Problem::bad_header(
            "idempotency-key",
            "needs 1 to 255 bytes",
        ));
    }
    let (mut parts, body) = request.into_parts();
    let limit = BodyLimit(route.max_body_bytes);
    let body = limit.read(&parts, body).await?;
    credential::check_again(app, &call, &parts).await?;
    let name = name(&call, parts.method.as_str(), &parts.uri.to_string(), &key);
    let (id, reservation) = app.reserve_reply(&name, &sha256(&body), call.now).await?;
    match reservation {
        Reservation::Taken => {
            call.reservation = Some(id);
            let place = resource(&parts.method, parts.uri.path());
            parts.extensions.insert(call);
            let request = Request::from_parts(parts, Body::from(body));
            store_response(app, id, next.run(request).await, place).await
        }
        Reservation::Pending => Err(Problem::repeated("a request with this key is under way")),
        Reservation::Lost => Err(Problem::repeated(
            "a request with this key was carried out, and its answer was lost",
        )),
        Reservation::Other => Err(Problem::other_request()),
        Reservation::Replied { reply, tenant } => {
            app.check_repetition(&call.actor, route.access, tenant, named)
                .await?;
            // The path of a deleted resource is not checked.
            let path = (parts.method != Method::DELETE).then(|| parts.uri.path());
            if let Some(path) = reply.location.as_deref().or(path)
                && app.is_gone(path).await?
            {
                // The stored response would refer to a deleted resource.
                let gone = "carried out before; the resource was deleted since";
                return Err(Problem::repeated(gone));
            }
            replay(reply)
        }
    }
}

fn name(call: &Call, method: &str, uri: &str, key: &HeaderValue) -> String {
    let actor = format!(
        "{} {}\n{method}\n{uri}\n",
        call.actor.kind(),
        call.actor.id()
    );
    sha256(&[actor.as_bytes(), key.as_bytes()].concat())
}

/// Path of the resource that a request changes, below the router's `path`: a POST to an existing
/// resource ends with a verb.
fn resource(method: &Method, path: &str) -> String {
    let own = if *method == Method::POST {
        path.rsplit_once('/').map_or(path, |(own, _)| own)
    } else {
        path
    };
    format!("{PREFIX}{own}")
}

/// Stores the response; after a failure it releases the key, so that the client can try again.
async fn store_response(
    app: &App,
    id: Uuid,
    response: Response,
    place: String,
) -> Result<Response, Problem> {
    if !response.status().is_success() {
        app.keep_reply(id, None).await?;
        return Ok(response);
    }
    let (reply, response) = split(response, place).await?;
    app.keep_reply(id, Some(&reply)).await?;
    Ok(response)
}

/// Copies what is stored of a response: its body only if it is small and has no secret. A large one
/// is stored with a location, by default `place`; a secret has only its own.
async fn split(response: Response, place: String) -> Result<(Reply, Response), Problem> {
    let is_secret = response
        .headers()
        .get(header::CACHE_CONTROL)
        .is_some_and(|value| value == "no-store");
    let (parts, body) = response.into_parts();
    let mut reply = Reply {
        status: parts.status.as_u16(),
        etag: field(&parts.headers, header::ETAG),
        location: field(&parts.headers, header::LOCATION),
        body: None,
    };
    let size = body.size_hint().upper();
    let size = size.and_then(|bytes| usize::try_from(bytes).ok());
    if is_secret {
        return Ok((reply, Response::from_parts(parts, body)));
    }
    if size.is_none_or(|bytes| MAX_KEPT_BYTES < bytes) {
        reply.location.get_or_insert(place);
        return Ok((reply, Response::from_parts(parts, body)));
    }
    let bytes = to_bytes(body, MAX_KEPT_BYTES).await;
    let bytes = bytes.map_err(|_| Problem::from_status(StatusCode::INTERNAL_SERVER_ERROR))?;
    reply.body = Some(String::from_utf8_lossy(&bytes).into_owned());
    Ok((reply, Response::from_parts(parts, Body::from(bytes))))
}

fn field(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?;
    Some(value.to_str().ok()?.to_owned())
}

fn replay(reply: Reply) -> Result<Response, Problem> {
    let Reply {
        status,
        etag,
        location,
        body,
    } = reply;
    let body = body.ok_or_else(|| match &location {
        Some(location) => Problem::repeated(&format!(
            "carried out before; the answer is not kept: see {location}"
        )),
        None => {
            Problem::repeated("carried out before; the answer held a secret that is shown once")
        }
    })?;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_TYPE);
    if status != StatusCode::NO_CONTENT {
        let json = HeaderValue::from_static("application/json");
        headers.insert(header::CONTENT_TYPE, json);
    }
    for (name, value) in [(header::ETAG, etag), (header::LOCATION, location)] {
        if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
            headers.insert(name, value);
        }
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_response_of_any_size_is_passed_on() {
        for (size, is_kept) in [
            (MAX_KEPT_BYTES, true),
            (MAX_KEPT_BYTES + 1, false),
            (2 * 1024 * 1024, false),
        ] {
            let response = (StatusCode::CREATED, "x".repeat(size)).into_response();
            let (reply, response) = split(response, String::new()).await.unwrap();
            assert_eq!((reply.status, reply.body.is_some()), (201, is_kept));
            assert_eq!(response.status(), StatusCode::CREATED);
            let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert_eq!(bytes.len(), size);
        }
    }

    #[test]
    fn the_resource_of_a_command_is_named_without_its_verb() {
        for (method, path, expected) in [
            (Method::PUT, "/orgs/1/sso", "/api/v1/orgs/1/sso"),
            (
                Method::POST,
                "/projects/1/bundles/2/assign",
                "/api/v1/projects/1/bundles/2",
            ),
        ] {
            assert_eq!(resource(&method, path), expected);
        }
    }
}
