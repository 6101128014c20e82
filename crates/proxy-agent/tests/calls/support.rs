//! Endpoints, requests and the runtime of a worker.

use agent_protocol::{BodyChunk, BodyData, RequestHeaders, RequestId};
use proxy_agent::{AgentClient, CallContext, CallError, EventNumber, HeadAnswer, Session};
use proxy_model::{AgentEncoding, AgentEventKind, AgentProtocol};
use proxy_plan::{AgentEndpoint, AgentEndpointAddress};
use std::borrow::Cow;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::LocalSet;

/// Deadline of a whole test.
const DEADLINE: Duration = Duration::from_mins(1);

/// Runs `test` like a worker: on one thread, with local tasks.
pub(crate) fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let tasks = LocalSet::new();
    let test = tasks.run_until(async { tokio::time::timeout(DEADLINE, test).await });
    runtime.unwrap().block_on(test).unwrap();
}

pub(crate) fn client(socket: &Path, protocol: AgentProtocol) -> Rc<AgentClient> {
    Rc::new(AgentClient::new(Arc::new(AgentEndpoint {
        name: "waf".into(),
        address: AgentEndpointAddress::Socket(socket.to_owned()),
        protocol,
        encoding: AgentEncoding::Json,
        events: [AgentEventKind::RequestBody, AgentEventKind::ResponseHeaders]
            .into_iter()
            .collect(),
        max_event_bytes: 2 << 20,
        max_response_bytes: 10_240,
        request_path: "/".to_owned(),
        request_host: None,
        copy_headers: Vec::new(),
        copy_response_headers: Vec::new(),
    })))
}

pub(crate) fn head(has_body: bool) -> RequestHeaders<'static> {
    RequestHeaders {
        id: RequestId::CONNECTION,
        seq: 0,
        timeout_ms: 1_000,
        correlation_id: "c".into(),
        route: "r".into(),
        client_ip: "192.0.2.1".into(),
        client_port: None,
        tls: None,
        method: "GET".into(),
        scheme: "http".into(),
        authority: "a.test".into(),
        target: "/".into(),
        http_version: "HTTP/1.1".into(),
        headers: Vec::new(),
        has_body,
        metadata: Cow::default(),
    }
}

pub(crate) async fn begin(client: &AgentClient, has_body: bool) -> Result<HeadAnswer, CallError> {
    client
        .begin(
            Duration::ZERO,
            head(has_body),
            &CallContext::default(),
            None,
        )
        .await
}

/// The whole of a body, as the session's next event.
pub(crate) fn body<'d>(session: &Session, data: &'d [u8]) -> BodyChunk<'d> {
    let EventNumber { id, seq } = session.next_event();
    BodyChunk {
        id,
        seq,
        timeout_ms: 1_000,
        data: BodyData(Cow::Borrowed(data)),
        last: true,
        truncated: false,
        decoded: false,
    }
}
