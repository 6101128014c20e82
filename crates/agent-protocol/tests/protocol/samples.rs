//! One message of each type, with all its fields.

use agent_protocol::{
    AgentMessage, Allow, Block, BodyChunk, BodyData, BodyMode, Cancel, Challenge, Completion,
    Decision, DecisionMessage, Drain, Encoding, ErrorCode, ErrorMessage, EventKind, Header,
    HeaderEdit, Hello, Metadata, MetadataByAgent, ProxyMessage, Redirect, RequestHeaders,
    RequestId, ResponseHeaders, Text, TlsClient, Wants, Welcome,
};
use std::borrow::Cow;

pub(crate) fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

pub(crate) fn decided(decision: Decision) -> AgentMessage<'static> {
    AgentMessage::Decision(DecisionMessage {
        id: id(1),
        seq: 0,
        decision,
    })
}

pub(crate) fn request() -> RequestHeaders<'static> {
    let mut metadata = Metadata::default();
    assert!(metadata.insert("user", "ann"));
    RequestHeaders {
        id: id(9),
        seq: 0,
        timeout_ms: 1000,
        correlation_id: "c-1".into(),
        route: "api".into(),
        client_ip: "2001:db8::1".into(),
        client_port: Some(50_000),
        tls: Some(TlsClient {
            version: Some("1.3".into()),
            server_name: Some("a.example".into()),
            certificate_sha256: None,
        }),
        method: "POST".into(),
        scheme: "https".into(),
        authority: "a.example:8443".into(),
        target: Text(Cow::Borrowed(b"/caf\xe9?q=1")),
        http_version: "HTTP/2".into(),
        headers: vec![
            Header::parsed("cookie", b"a=1"),
            Header::parsed("cookie", b"b=\xff"),
        ],
        has_body: true,
        metadata: Cow::Owned(MetadataByAgent::from([("auth".to_owned(), metadata)])),
    }
}

pub(crate) fn chunk() -> BodyChunk<'static> {
    BodyChunk {
        id: id(9),
        seq: 1,
        timeout_ms: 900,
        data: BodyData(Cow::Borrowed(b"\x00\xff{}")),
        last: true,
        truncated: true,
        decoded: true,
    }
}

pub(crate) fn proxy_messages() -> Vec<ProxyMessage<'static>> {
    vec![
        ProxyMessage::Hello(hello()),
        ProxyMessage::RequestHeaders(request()),
        ProxyMessage::RequestBody(chunk()),
        ProxyMessage::ResponseHeaders(ResponseHeaders {
            id: id(9),
            seq: 2,
            timeout_ms: 900,
            upstream: Some("app".into()),
            status: 200,
            http_version: "HTTP/1.1".into(),
            headers: vec![Header::parsed("content-type", b"text/plain")],
            has_body: true,
        }),
        ProxyMessage::ResponseBody(chunk()),
        ProxyMessage::Completion(Completion {
            id: id(9),
            status: Some(403),
            reason: Some("agent_blocked".into()),
            request_bytes: 4,
            response_bytes: 5,
            duration_ms: 6,
        }),
        ProxyMessage::Cancel(Cancel { id: id(9) }),
        ProxyMessage::Error(ErrorMessage {
            id: RequestId::CONNECTION,
            code: ErrorCode::Protocol,
            message: "no".into(),
        }),
    ]
}

pub(crate) fn agent_messages() -> Vec<AgentMessage<'static>> {
    let mut metadata = Metadata::default();
    assert!(metadata.insert("score", "5"));
    vec![
        AgentMessage::Welcome(welcome()),
        decided(Decision::Allow(Allow {
            request_headers: vec![
                HeaderEdit::set("X-User", "ann").unwrap(),
                HeaderEdit::add("x-role", Text(Cow::Borrowed(b"\xe9"))).unwrap(),
                HeaderEdit::remove("Cookie").unwrap(),
            ],
            response_headers: vec![HeaderEdit::set("x-frame-options", "DENY").unwrap()],
            metadata,
            skip: vec![EventKind::ResponseBody, EventKind::Completion],
        })),
        decided(Decision::Block(Block {
            status: Some(451),
            headers: vec![Header::new("content-type", "text/plain").unwrap()],
            body: Some(b"no\xff".to_vec().into()),
            reason: Some("942100".to_owned()),
        })),
        decided(Decision::Redirect(Redirect {
            status: 303,
            location: "https://login.example/".into(),
            headers: Vec::new(),
            body: Some(b"moved".to_vec().into()),
        })),
        decided(Decision::Challenge(Challenge {
            challenges: vec!["Bearer".into()],
            headers: Vec::new(),
            body: None,
            reason: None,
        })),
        AgentMessage::Drain(Drain {
            id: RequestId::CONNECTION,
        }),
        AgentMessage::Error(ErrorMessage {
            id: id(1),
            code: ErrorCode::Overloaded,
            message: "later".into(),
        }),
    ]
}

pub(crate) fn hello() -> Hello {
    Hello {
        id: RequestId::CONNECTION,
        versions: vec![1],
        encodings: vec!["message-pack".to_owned(), "json".to_owned()],
        proxy: "proxyd/0.1.0".to_owned(),
        agent: "waf".to_owned(),
        max_event_bytes: 1 << 20,
        max_decision_bytes: 10_240,
        features: Vec::new(),
    }
}

pub(crate) fn welcome() -> Welcome {
    Welcome {
        id: RequestId::CONNECTION,
        version: 1,
        encoding: Encoding::MessagePack,
        agent: "waf/1".to_owned(),
        wants: Wants {
            request_body: BodyMode::Buffered,
            response_headers: true,
            response_body: BodyMode::Chunks,
            completion: true,
        },
        features: Vec::new(),
    }
}
