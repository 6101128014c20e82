//! Events for agents: heads and pieces of bodies.

use super::content::ContentPiece;
use crate::exchange::Exchange;
use crate::response::body::Body;
use agent_protocol::{BodyChunk, Header, RequestHeaders, RequestId, ResponseHeaders, TlsClient};
use http::header::AUTHORIZATION;
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderValue, Response, Version};
use http_body::Body as _;
use proxy_agent::EventNumber;
use proxy_http1::RawTarget;
use proxy_plan::{AgentPlan, CredentialsPlan, RoutePlan};
use proxy_tls::ClientAuthVerdict;
use std::borrow::Cow;

/// The head of the request. Its id and number are the session's.
pub(super) fn request_head<'e>(exchange: &'e Exchange, agent: &AgentPlan) -> RequestHeaders<'e> {
    let head = &exchange.head;
    let record = &exchange.completion.record;
    let client = exchange.client();
    let authority = head
        .uri
        .authority()
        .map(|host| Authority::as_str(host).as_bytes());
    let authority = authority.or_else(|| head.headers.host().map(HeaderValue::as_bytes));
    let target = head.uri.path_and_query().map_or("", PathAndQuery::as_str);
    let raw = head.extensions.get::<RawTarget>();
    let target = raw.map_or(target.as_bytes(), |RawTarget(raw)| raw);
    let routes = exchange.active().plan.routes();
    let route = record.parts.route.and_then(|at| routes.get(at));
    RequestHeaders {
        id: RequestId::CONNECTION,
        seq: 0,
        timeout_ms: millis(agent),
        correlation_id: record.correlation_id.as_str().into(),
        route: route.map_or("", |route| &*route.id).into(),
        client_ip: record.client_ip.to_string().into(),
        client_port: client
            .peer
            .port
            .filter(|_| client.peer.ip == record.client_ip),
        tls: client.peer.tls.then(|| tls(exchange)),
        method: head.method.as_str().into(),
        scheme: exchange.request_head().scheme().name().into(),
        authority: authority.unwrap_or_default().into(),
        target: target.into(),
        http_version: version(head.version).into(),
        headers: request_fields(head.headers.as_map(), route),
        has_body: exchange
            .body
            .as_ref()
            .is_some_and(|body| !body.is_end_stream()),
        metadata: record
            .agents
            .as_ref()
            .map_or_else(Cow::default, |agents| Cow::Owned(agents.metadata.clone())),
    }
}

/// A piece of a body, as the event with this request and sequence number.
pub(super) fn body_chunk<'c>(
    number: EventNumber,
    agent: &AgentPlan,
    piece: ContentPiece<'c>,
) -> BodyChunk<'c> {
    let ContentPiece {
        data,
        is_last,
        is_truncated,
        was_decoded,
    } = piece;
    BodyChunk {
        id: number.id,
        seq: number.seq,
        timeout_ms: millis(agent),
        data,
        last: is_last,
        truncated: is_last && is_truncated,
        decoded: was_decoded,
    }
}

/// The head of the response, as the client would get it.
pub(super) fn response_head<'e>(
    number: EventNumber,
    agent: &AgentPlan,
    upstream: &'e str,
    response: &'e Response<Body>,
) -> ResponseHeaders<'e> {
    ResponseHeaders {
        id: number.id,
        seq: number.seq,
        timeout_ms: millis(agent),
        upstream: (!upstream.is_empty()).then(|| upstream.into()),
        status: response.status().as_u16(),
        http_version: version(response.version()).into(),
        headers: fields(response.headers()),
        has_body: !response.body().is_end_stream(),
    }
}

fn tls(exchange: &Exchange) -> TlsClient<'_> {
    let session = exchange.client().session.as_ref();
    let version = session.and_then(|session| session.version);
    let server_name = session.and_then(|session| session.server_name.as_deref());
    let certificate = session.and_then(|session| match &session.verdict {
        ClientAuthVerdict::Verified { sha256, .. } => Some(Cow::Borrowed(sha256.as_str())),
        ClientAuthVerdict::NotAsked
        | ClientAuthVerdict::Missing { .. }
        | ClientAuthVerdict::Rejected { .. } => None,
    });
    TlsClient {
        version: version.map(Cow::Borrowed),
        server_name: server_name.map(Cow::Borrowed),
        certificate_sha256: certificate,
    }
}

fn fields(headers: &HeaderMap) -> Vec<Header<'_>> {
    let fields = headers.iter();
    let fields = fields.map(|(name, value)| Header::parsed(name.as_str(), value.as_bytes()));
    fields.collect()
}

/// The fields of a request, without credentials that the route checks for itself.
fn request_fields<'h>(headers: &'h HeaderMap, route: Option<&RoutePlan>) -> Vec<Header<'h>> {
    let mut fields = fields(headers);
    let credentials = route.and_then(|route| route.credentials.as_deref());
    if matches!(credentials, Some(CredentialsPlan::Basic(_))) {
        fields.retain(|field| {
            field.name() != AUTHORIZATION.as_str() || !is_basic(field.value().as_bytes())
        });
    }
    fields
}

/// Returns true if the value of `Authorization` is of the scheme `Basic`.
fn is_basic(value: &[u8]) -> bool {
    let scheme = value.split(|byte| *byte == b' ').next();
    scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"Basic"))
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

fn millis(agent: &AgentPlan) -> u64 {
    u64::try_from(agent.timeout.as_millis()).unwrap_or(u64::MAX)
}
