//! Credentials of requests: extraction, and a second check after slow bodies and long waits.

use crate::response::problem::Problem;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderName, header};
use control_app::{App, Call, Presented};
use control_domain::Access;
use control_http::{SessionCookie, cookie};

const NODE_KEY: HeaderName = HeaderName::from_static("x-service-node-key");

/// The access rule that admitted the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdmittedBy(pub(crate) Access);

/// Checks the credential of `call` again, if the request has waited for its body or for a change.
///
/// # Errors
///
/// 401, 403 or 404 as at admission; 409 if the rights of the credential have changed.
pub(crate) async fn check_again(app: &App, call: &Call, request: &Parts) -> Result<(), Problem> {
    let Some(AdmittedBy(access)) = request.extensions.get().copied() else {
        return Ok(());
    };
    let extensions = &request.extensions;
    let presented = presented(&request.headers, extensions);
    let Call { actor, now, .. } = call;
    let checked = control_http::check_again(app, presented, extensions, actor, access, *now);
    Ok(checked.await?)
}

/// The credential of a request. Several of the same kind count as none, because a proxy in front
/// may have checked another one.
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

/// Value of a field that occurs exactly once; otherwise empty, which is never a valid credential.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> &'a str {
    let mut values = headers.get_all(name).iter();
    let first = values.next().filter(|_| values.next().is_none());
    first
        .and_then(|value| value.to_str().ok())
        .unwrap_or_default()
}
