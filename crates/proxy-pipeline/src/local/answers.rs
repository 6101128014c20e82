//! Redirects and fixed responses.

use crate::exchange::Exchange;
use crate::response::body::Body;
use crate::response::local_reply::Answer;
use bytes::Bytes;
use http::Response;
use http::header::LOCATION;
use proxy_plan::{FixedResponsePlan, Redirection, RoutePlan};
use std::sync::Arc;

/// A route's text, shared by its responses: a client that does not read keeps no copy of it in
/// memory.
struct SharedText(Arc<str>);

impl AsRef<[u8]> for SharedText {
    fn as_ref(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

/// The response of a redirect, without a body.
pub(crate) fn redirect(
    exchange: &Exchange,
    route: &RoutePlan,
    redirection: Redirection,
) -> Response<Body> {
    let Redirection { status, location } = redirection;
    let answer = Answer {
        status,
        content_type: None,
        body: Bytes::new(),
    };
    let mut response = exchange.answer(answer);
    let headers = response.headers_mut();
    headers.insert(LOCATION, location);
    exchange.response_edits(route).apply(headers);
    response
}

/// The fixed response of the route, to a request of any method.
pub(crate) fn respond(
    exchange: &mut Exchange,
    route: &RoutePlan,
    response: &FixedResponsePlan,
) -> Response<Body> {
    let body = response.body.as_ref();
    let text = body.map(|body| Bytes::from_owner(SharedText(Arc::clone(body))));
    let answer = Answer {
        status: response.status,
        content_type: body.map(|_| response.content_type.clone()),
        body: text.unwrap_or_default(),
    };
    exchange.record().problem = response.problem().map(Box::new);
    let mut response = exchange.answer(answer);
    exchange.response_edits(route).apply(response.headers_mut());
    response
}
