//! Admission of requests: rate limit, authentication, permission.

use crate::request::body::BodyLimit;
use crate::request::credential::{AdmittedBy, presented};
use crate::request::{extract, idempotency};
use crate::response::problem::Problem;
use crate::route::Route;
use axum::body::HttpBody;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use control_app::{Allowance, App, BodyPermit, Call, Error, Presented, metric};
use control_domain::{Access, Actor};
use control_http::{
    AddressBuckets, CorrelationId, RATE_LIMIT, RateClass, browser, client_ip, id_in_path,
    is_same_origin, named_tenant, write_allowance,
};
use control_wire::{NodeId, ProjectId};
use jiff::Timestamp;
use metrics::counter;
use std::sync::Arc;

/// Middleware in front of every handler; gets the handler's route.
pub(crate) async fn admit(
    State((app, route)): State<(Arc<App>, &'static Route)>,
    request: Request,
    next: Next,
) -> Response {
    let now = app.now();
    let (mut parts, body) = request.into_parts();
    let node = node_of_path(route, &mut parts).await;
    let is_conditional = extract::if_match(&parts.headers).is_some();
    let identified = identify(&app, route, node, &parts, now).await;
    parts.extensions.insert(BodyLimit(route.max_body_bytes));
    let request = Request::from_parts(parts, body);
    let (allowance, actor) = match identified {
        Ok(found) => found,
        Err(error) => return Problem::from(error).into_response(),
    };
    let outcome = match actor {
        _ if !allowance.admitted => {
            counter!(metric::RATE_LIMITED, "class" => route.rate.name()).increment(1);
            Err(Problem::rate_limited(allowance.retry_after_secs))
        }
        None if route.access == Access::Public => visit(route, now, request, next).await,
        None => Err(Error::Unauthenticated.into()),
        Some(actor) => {
            let call = call(actor, now, &request);
            let mut request = request;
            request.extensions_mut().insert(AdmittedBy(route.access));
            enter(&app, route, call, request, next).await
        }
    };
    let mut response = outcome.into_response();
    if let Some(problem) = response.extensions_mut().get_mut::<Problem>() {
        problem.name_missing(route);
        if is_conditional {
            problem.fail_precondition();
        }
    }
    write_allowance(&allowance, response.headers_mut());
    response
}

/// Charges the rate limit of `address` unless a route has already charged it: requests for unknown
/// paths, for other methods and for the reference cost as much.
pub(crate) async fn meter(app: &App, address: &AddressBuckets, response: Response) -> Response {
    let was_taken = response.headers().contains_key(RATE_LIMIT);
    if was_taken || response.status() == StatusCode::SERVICE_UNAVAILABLE {
        return response;
    }
    let class = RateClass::General;
    // Routes that need no database respond while it is down.
    let taken = address.take(app, app.now()).await;
    let Ok(allowance) = taken else {
        return response;
    };
    let mut response = response;
    if !allowance.admitted {
        counter!(metric::RATE_LIMITED, "class" => class.name()).increment(1);
        response = Problem::rate_limited(allowance.retry_after_secs).into_response();
    }
    write_allowance(&allowance, response.headers_mut());
    response
}

/// Authenticates the actor, after a token was taken. A node's credential is refused on another
/// node's path.
async fn identify(
    app: &App,
    route: &Route,
    node: Option<NodeId>,
    request: &Parts,
    now: Timestamp,
) -> Result<(Allowance, Option<Actor>), Error> {
    let presented =
        presented(&request.headers, &request.extensions).filter(|_| route.access != Access::Public);
    let accepts = |actor: &Actor| {
        let Actor::Node { id, .. } = actor else {
            return true;
        };
        node.is_none_or(|node| node == *id)
    };
    let extensions = &request.extensions;
    control_http::identify(app, route.rate, presented, extensions, now, accepts).await
}

/// Identifier of the node in the path, if the route needs that node's credential.
async fn node_of_path(route: &Route, parts: &mut Parts) -> Option<NodeId> {
    if !matches!(route.access, Access::OwnNode | Access::OwnNodeKey) {
        return None;
    }
    id_in_path(parts, "node").await
}

async fn enter(
    app: &App,
    route: &Route,
    mut call: Call,
    request: Request,
    next: Next,
) -> Result<Response, Problem> {
    let (mut parts, body) = request.into_parts();
    let named = named_tenant(&mut parts).await;
    let mut request = Request::from_parts(parts, body);
    app.check_access(&call.actor, route.access, named).await?;
    if route.method.is_safe() {
        request.extensions_mut().insert(call);
        return Ok(next.run(request).await);
    }
    refuse_other_sites(&request)?;
    call.if_match = extract::if_match(request.headers());
    if call.if_match.is_some() && !route.is_versioned {
        // The resource has no version to compare, so no `If-Match` can match (RFC 9110, section
        // 13.1.1).
        return Err(Error::Precondition.into());
    }
    let (mut parts, body) = request.into_parts();
    // A body without a length counts as one of the maximum size.
    let hint = body.size_hint().upper();
    let bytes = hint.and_then(|bytes| usize::try_from(bytes).ok());
    let bytes = bytes.map_or(route.max_body_bytes, |bytes| {
        bytes.min(route.max_body_bytes)
    });
    match body_permit(app, route, named.project, &call, bytes).await {
        Ok(permit) => {
            if let Some(permit) = &permit {
                parts.extensions.insert(permit.admitted());
            }
            let request = Request::from_parts(parts, body);
            idempotency::run(app, route, named, call, request, next).await
        }
        Err(error) => {
            let limit = BodyLimit(route.max_body_bytes);
            limit.discard(&parts.headers, body).await;
            Err(error.into())
        }
    }
}

/// Reserves resources before the body is read: bytes of a node's budget, and a permit for a large
/// body, held until the response is sent.
async fn body_permit(
    app: &App,
    route: &Route,
    project: Option<ProjectId>,
    call: &Call,
    bytes: usize,
) -> Result<Option<BodyPermit>, Error> {
    if route.access == Access::OwnNode
        && let Err(error) = app.take_report_bytes(&call.actor, bytes as u64, call.now)
    {
        counter!(metric::RATE_LIMITED, "class" => "report_bytes").increment(1);
        return Err(error);
    }
    match project.filter(|_| route.is_upload()) {
        Some(project) => {
            let permit = app
                .upload_permit(&call.actor, route.access, project, bytes)
                .await?;
            Ok(Some(permit))
        }
        // A malformed identifier in the path is refused before the body is read.
        None => app.body_permit(&call.actor, bytes).await,
    }
}

/// Admits a request that needs no credential. Refuses cross-site requests, because the response may
/// set a session cookie.
async fn visit(
    route: &Route,
    now: Timestamp,
    mut request: Request,
    next: Next,
) -> Result<Response, Problem> {
    if !route.method.is_safe() && !is_same_origin(&request) {
        return Err(Problem::other_site());
    }
    let visit = extract::visit(now, &request);
    request.extensions_mut().insert(visit);
    Ok(next.run(request).await)
}

fn call(actor: Actor, now: Timestamp, request: &Request) -> Call {
    let id = request.extensions().get::<CorrelationId>();
    Call {
        actor,
        client_ip: client_ip(request.extensions()),
        browser: browser(request.headers()),
        now,
        correlation_id: id.map(|CorrelationId(id)| id.clone()).unwrap_or_default(),
        if_match: None,
        reservation: None,
    }
}

/// Refuses cross-site requests with cookies: browsers send cookies with them as well, but mark them
/// by `Sec-Fetch-Site` or `Origin`.
fn refuse_other_sites(request: &Request) -> Result<(), Problem> {
    let presented = presented(request.headers(), request.extensions());
    if matches!(presented, Some(Presented::Session(_))) && !is_same_origin(request) {
        return Err(Problem::other_site());
    }
    Ok(())
}
