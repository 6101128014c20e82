//! The credential of a request, at its admission and behind a body that came late.

use crate::response::problem::Problem;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, header};
use control_app::{App, Presented};
use control_domain::{Access, Actor};
use control_http::{SessionCookie, cookie};
use jiff::Timestamp;
use std::sync::Arc;

const NODE_KEY: HeaderName = HeaderName::from_static("x-service-node-key");

/// The admission of a request by its credential.
#[derive(Clone)]
pub(crate) struct Admitted {
    pub(crate) app: Arc<App>,
    pub(crate) access: Access,
    pub(crate) actor: Actor,
    pub(crate) at: Timestamp,
}

/// Checks the credential of a request again that has waited for its body or for news.
///
/// # Errors
///
/// 401, 403 or 404 as at its admission, 409 if the rights of the credential changed.
pub(crate) async fn check_again(request: &Parts) -> Result<(), Problem> {
    let Some(admitted) = request.extensions.get::<Admitted>() else {
        return Ok(());
    };
    let Admitted {
        app,
        access,
        actor,
        at,
    } = admitted;
    let presented = presented(&request.headers, &request.extensions);
    let checked =
        control_http::check_again(app, presented, &request.extensions, (actor, *access, *at));
    Ok(checked.await?)
}

/// The credential of a request. Two of one kind are none: a program in front of this one may have looked
/// at the other.
pub(crate) fn presented<'a>(
    headers: &'a HeaderMap,
    extensions: &Extensions,
) -> Option<Presented<'a>> {
    if headers.contains_key(header::AUTHORIZATION) {
        let text = only(headers, &header::AUTHORIZATION);
        let (scheme, secret) = text.split_once(' ').unwrap_or_default();
        let is_bearer = scheme.eq_ignore_ascii_case("bearer");
        return Some(Presented::Bearer(if is_bearer {
            secret.trim()
        } else {
            ""
        }));
    }
    if headers.contains_key(NODE_KEY) {
        return Some(Presented::NodeKey(only(headers, &NODE_KEY)));
    }
    let name = extensions.get::<SessionCookie>().copied();
    let name = name.unwrap_or_default().name();
    cookie(headers, name).map(Presented::Session)
}

/// The text of the field that stands there once; else empty, which no credential is.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none());
    first
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
