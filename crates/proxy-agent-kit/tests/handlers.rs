//! Requests with handlers that fail, wait or keep state.
#![expect(clippy::unwrap_used, clippy::panic, reason = "tests may fail loudly")]

use agent_protocol::{
    AgentMessage, BODY_PARTS, BodyChunk, Cancel, Completion, Decision, Encoding, ErrorCode, Hello,
    ProxyMessage, RequestHeaders, RequestId, read_frame,
};
use proxy_agent_kit::{
    Agent, AgentFailure, Allow, Answer, BodyMode, Metadata, Wants, allow, block, serve,
};
use std::borrow::Cow;
use std::future::pending;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::{JoinHandle, yield_now};

const LIMIT: usize = 1 << 20;
const MAX_DECISION_BYTES: usize = 4096;

/// Follows instructions in the request's target.
struct Obedient {
    request_body: BodyMode,
    /// Requests with a state.
    states: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Seen {
    bytes: usize,
    states: Option<Arc<AtomicUsize>>,
}

impl Drop for Seen {
    fn drop(&mut self) {
        if let Some(states) = &self.states {
            states.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Agent for Obedient {
    type State = Seen;

    fn name(&self) -> &'static str {
        "obedient/1"
    }

    fn wants(&self) -> Wants {
        Wants {
            request_body: self.request_body,
            ..Wants::default()
        }
    }

    async fn request_headers(
        &self,
        request: &RequestHeaders<'static>,
        state: &mut Seen,
    ) -> Result<Answer, AgentFailure> {
        self.states.fetch_add(1, Ordering::SeqCst);
        state.states = Some(Arc::clone(&self.states));
        match request.target.to_str().unwrap() {
            "/panic" => panic!("as the request says"),
            "/fail" => Err(AgentFailure("as the request says".to_owned())),
            "/wait" => pending().await,
            "/long" => {
                let mut metadata = Metadata::default();
                for key in 0..8 {
                    assert!(metadata.insert(&key.to_string(), &"x".repeat(1_000)));
                }
                Ok(Decision::Allow(Allow {
                    metadata,
                    ..Allow::default()
                }))
            }
            _ => Ok(allow()),
        }
    }

    async fn request_body(
        &self,
        chunk: &BodyChunk<'static>,
        state: &mut Seen,
    ) -> Result<Answer, AgentFailure> {
        state.bytes += chunk.data.as_bytes().len();
        Ok(block(state.bytes.to_string()))
    }
}

struct Proxy {
    stream: UnixStream,
    input: Vec<u8>,
    states: Arc<AtomicUsize>,
    agent: JoinHandle<()>,
    _folder: TempDir,
}

impl Proxy {
    async fn start() -> Self {
        Self::start_with(BodyMode::Chunks).await
    }

    /// The mode in which the agent requests bodies.
    async fn start_with(request_body: BodyMode) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("agent.sock");
        let states = Arc::default();
        let agent = Obedient {
            request_body,
            states: Arc::clone(&states),
        };
        let listening = path.clone();
        let agent = tokio::spawn(async move { serve(agent, listening, pending()).await.unwrap() });
        let mut proxy = Self {
            stream: connected(&path).await,
            input: Vec::new(),
            states,
            agent,
            _folder: folder,
        };
        let hello = Hello {
            id: RequestId::CONNECTION,
            versions: vec![1],
            encodings: vec!["message-pack".to_owned(), "json".to_owned()],
            proxy: "test".to_owned(),
            agent: "test".to_owned(),
            max_event_bytes: LIMIT,
            max_decision_bytes: MAX_DECISION_BYTES,
            features: vec![BODY_PARTS.to_owned(), "later".to_owned()],
        };
        proxy.send(&ProxyMessage::Hello(hello)).await;
        let AgentMessage::Welcome(welcome) = proxy.receive().await else {
            panic!("no welcome");
        };
        assert!(welcome.wants.completion && welcome.encoding == Encoding::MessagePack);
        assert_eq!(welcome.features, [BODY_PARTS]);
        proxy
    }

    async fn send(&mut self, message: &ProxyMessage<'_>) {
        let mut bytes = Vec::new();
        message
            .encode(Encoding::MessagePack, LIMIT, &mut bytes)
            .unwrap();
        self.stream.write_all(&bytes).await.unwrap();
    }

    async fn receive(&mut self) -> AgentMessage<'static> {
        loop {
            if let Some((frame, length)) = read_frame(&self.input, LIMIT).unwrap() {
                let message = AgentMessage::decode(frame, Encoding::MessagePack).unwrap();
                self.input.drain(..length);
                return message;
            }
            assert_ne!(self.stream.read_buf(&mut self.input).await.unwrap(), 0);
        }
    }

    async fn head(&mut self, number: u64, target: &'static str) {
        let event = RequestHeaders {
            id: id(number),
            seq: 0,
            timeout_ms: 1_000,
            correlation_id: "c".into(),
            route: "r".into(),
            client_ip: "192.0.2.1".into(),
            client_port: None,
            tls: None,
            method: "GET".into(),
            scheme: "http".into(),
            authority: "a.example".into(),
            target: target.into(),
            http_version: "HTTP/2".into(),
            headers: Vec::new(),
            has_body: true,
            metadata: Cow::default(),
        };
        self.send(&ProxyMessage::RequestHeaders(event)).await;
    }

    /// The answer to a request's head.
    async fn asked(&mut self, number: u64, target: &'static str) -> AgentMessage<'static> {
        self.head(number, target).await;
        self.receive().await
    }

    async fn until_states(&self, count: usize) {
        while self.states.load(Ordering::SeqCst) != count {
            yield_now().await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.agent.abort();
    }
}

async fn connected(path: &Path) -> UnixStream {
    loop {
        if let Ok(stream) = UnixStream::connect(path).await {
            return stream;
        }
        yield_now().await;
    }
}

fn id(number: u64) -> RequestId {
    RequestId::new(number).unwrap()
}

fn is_allowed(message: &AgentMessage<'_>) -> bool {
    matches!(message, AgentMessage::Decision(decision) if decision.decision.name() == "allow")
}

fn failure(message: AgentMessage<'static>, number: u64) -> String {
    let AgentMessage::Error(error) = message else {
        panic!("{message:?}");
    };
    assert_eq!((error.id, error.code), (id(number), ErrorCode::Internal));
    error.message.into_owned()
}

#[tokio::test]
async fn a_handler_that_fails_or_panics_fails_its_request_alone() {
    let mut proxy = Proxy::start().await;
    assert_eq!(
        failure(proxy.asked(1, "/fail").await, 1),
        "as the request says"
    );
    assert_eq!(
        failure(proxy.asked(2, "/panic").await, 2),
        "the handler panicked"
    );
    assert!(failure(proxy.asked(3, "/long").await, 3).contains("longer than 4096"));
    assert!(is_allowed(&proxy.asked(4, "/").await));
}

#[tokio::test]
async fn a_handler_that_waits_holds_up_no_other_and_ends_with_its_request() {
    let mut proxy = Proxy::start().await;
    proxy.head(1, "/wait").await;
    assert!(is_allowed(&proxy.asked(2, "/").await));
    proxy.until_states(2).await;
    proxy
        .send(&ProxyMessage::Cancel(Cancel { id: id(1) }))
        .await;
    proxy.until_states(1).await;
    assert!(is_allowed(&proxy.asked(3, "/").await));
}

#[tokio::test]
async fn a_state_lasts_from_the_head_to_the_completion() {
    let mut proxy = Proxy::start().await;
    assert!(is_allowed(&proxy.asked(1, "/").await));
    for (seq, reason) in [(1, "3"), (2, "6")] {
        let chunk = BodyChunk {
            id: id(1),
            seq,
            timeout_ms: 1_000,
            data: b"abc"[..].into(),
            last: seq == 2,
            truncated: false,
            decoded: false,
        };
        proxy.send(&ProxyMessage::RequestBody(chunk)).await;
        let AgentMessage::Decision(message) = proxy.receive().await else {
            panic!("no decision");
        };
        assert_eq!(message.decision, block(reason));
    }
    proxy.until_states(1).await;
    let completion = Completion {
        id: id(1),
        status: None,
        reason: None,
        request_bytes: 6,
        response_bytes: 0,
        duration_ms: 1,
    };
    proxy.send(&ProxyMessage::Completion(completion)).await;
    proxy.until_states(0).await;
}

#[tokio::test]
async fn a_body_in_parts_is_one_event_and_requests_between_them_are_decided() {
    let mut proxy = Proxy::start_with(BodyMode::Buffered).await;
    assert!(is_allowed(&proxy.asked(1, "/").await));
    for (data, last) in [("abc", false), ("defg", false), ("h", true)] {
        let chunk = BodyChunk {
            id: id(1),
            seq: 1,
            timeout_ms: 1_000,
            data: data.as_bytes().into(),
            last,
            truncated: last,
            decoded: false,
        };
        proxy.send(&ProxyMessage::RequestBody(chunk)).await;
        if !last {
            let number = 10 + data.len() as u64;
            assert!(is_allowed(&proxy.asked(number, "/").await));
        }
    }
    let AgentMessage::Decision(message) = proxy.receive().await else {
        panic!("no decision");
    };
    assert_eq!((message.id, message.seq), (id(1), 1));
    assert_eq!(message.decision, block("8"));
}
