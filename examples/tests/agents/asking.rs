//! The proxy's side of a connection.

use agent_protocol::{
    AgentMessage, Allow, BodyChunk, Decision, Encoding, Header, HeaderEdit, Hello, ProxyMessage,
    RequestHeaders, RequestId, ResponseHeaders, Text, read_frame,
};
use std::borrow::Cow;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const LIMIT: usize = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(20);

/// A request to decide on.
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) target: &'a str,
    pub(crate) client_ip: &'a str,
    pub(crate) headers: Vec<(&'a str, String)>,
    pub(crate) body: Option<&'a [u8]>,
}

impl<'a> Asked<'a> {
    pub(crate) fn get(target: &'a str) -> Self {
        Self {
            method: "GET",
            target,
            client_ip: "192.0.2.1",
            headers: Vec::new(),
            body: None,
        }
    }

    pub(crate) fn from(client_ip: &'a str) -> Self {
        Self {
            client_ip,
            ..Self::get("/")
        }
    }

    pub(crate) fn header(mut self, name: &'a str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }
}

/// A connection after its handshake.
pub(crate) struct Asking {
    stream: UnixStream,
    input: Vec<u8>,
    next_id: u64,
    seq: u32,
}

impl Asking {
    pub(crate) fn connect(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut asking = Self {
            stream,
            input: Vec::new(),
            next_id: 1,
            seq: 0,
        };
        asking.send(&ProxyMessage::Hello(Hello {
            id: RequestId::CONNECTION,
            versions: vec![1],
            encodings: vec!["json".to_owned()],
            proxy: "test".to_owned(),
            agent: "test".to_owned(),
            max_event_bytes: LIMIT,
            max_decision_bytes: 10_240,
            features: Vec::new(),
        }));
        assert!(matches!(asking.receive(), Some(AgentMessage::Welcome(_))));
        asking
    }

    /// The decision on a request; on its body, if the agent gets a body event.
    pub(crate) fn ask(&mut self, asked: &Asked<'_>) -> Decision {
        let id = RequestId::new(self.next_id).unwrap();
        self.next_id += 1;
        self.seq = 0;
        let mut headers = vec![
            Header::parsed("host", b"shop.example"),
            Header::parsed("accept", b"text/html"),
        ];
        let own = asked.headers.iter();
        headers.extend(own.map(|(name, value)| Header::parsed(name, value.as_bytes())));
        if !asked.headers.iter().any(|(name, _)| *name == "user-agent") {
            headers.push(Header::parsed("user-agent", b"Mozilla/5.0"));
        }
        self.send(&ProxyMessage::RequestHeaders(RequestHeaders {
            id,
            seq: 0,
            timeout_ms: 1_000,
            correlation_id: "c".into(),
            route: "shop".into(),
            client_ip: asked.client_ip.into(),
            client_port: Some(50_000),
            tls: None,
            method: asked.method.into(),
            scheme: "http".into(),
            authority: "shop.example".into(),
            target: Text::from(asked.target),
            http_version: "HTTP/1.1".into(),
            headers,
            has_body: asked.body.is_some(),
            metadata: Cow::default(),
        }));
        let decision = self.decision();
        match asked.body {
            Some(body) if matches!(decision, Decision::Allow(_)) => {
                self.body(ProxyMessage::RequestBody, body)
            }
            _ => decision,
        }
    }

    /// The decision on the response to the last request.
    pub(crate) fn ask_response(&mut self, status: u16, body: &[u8]) -> Decision {
        self.seq += 1;
        self.send(&ProxyMessage::ResponseHeaders(ResponseHeaders {
            id: RequestId::new(self.next_id - 1).unwrap(),
            seq: self.seq,
            timeout_ms: 1_000,
            upstream: None,
            status,
            http_version: "HTTP/1.1".into(),
            headers: vec![Header::parsed("content-type", b"text/html")],
            has_body: true,
        }));
        match self.decision() {
            Decision::Allow(_) => self.body(ProxyMessage::ResponseBody, body),
            refused => refused,
        }
    }

    fn body<'a>(
        &mut self,
        message: fn(BodyChunk<'a>) -> ProxyMessage<'a>,
        body: &'a [u8],
    ) -> Decision {
        self.seq += 1;
        self.send(&message(BodyChunk {
            id: RequestId::new(self.next_id - 1).unwrap(),
            seq: self.seq,
            timeout_ms: 1_000,
            data: body.into(),
            last: true,
            truncated: false,
            decoded: false,
        }));
        self.decision()
    }

    fn decision(&mut self) -> Decision {
        match self.receive() {
            Some(AgentMessage::Decision(message)) => {
                assert_eq!(message.seq, self.seq);
                message.decision
            }
            other => panic!("{other:?} came for a decision"),
        }
    }

    fn send(&mut self, message: &ProxyMessage<'_>) {
        let mut bytes = Vec::new();
        message.encode(Encoding::Json, LIMIT, &mut bytes).unwrap();
        self.stream.write_all(&bytes).unwrap();
    }

    /// The next message; `None` at the end of the connection.
    pub(crate) fn receive(&mut self) -> Option<AgentMessage<'static>> {
        loop {
            if let Some((frame, length)) = read_frame(&self.input, LIMIT).unwrap() {
                let message = AgentMessage::decode(frame, Encoding::Json).unwrap();
                self.input.drain(..length);
                return Some(message);
            }
            let mut piece = [0; 4096];
            let length = self.stream.read(&mut piece).unwrap();
            if length == 0 {
                return None;
            }
            self.input.extend_from_slice(&piece[..length]);
        }
    }
}

/// The edits of a request that was allowed, in words.
pub(crate) fn edits(decision: &Decision) -> Vec<String> {
    let Decision::Allow(Allow {
        request_headers, ..
    }) = decision
    else {
        panic!("{decision:?}");
    };
    let words = request_headers.iter().map(|edit| match edit {
        HeaderEdit::Set(header) => {
            format!("set {}={}", header.name(), header.value().to_str().unwrap())
        }
        HeaderEdit::Add(header) => format!("add {}", header.name()),
        HeaderEdit::Remove(name) => format!("remove {}", name.as_str()),
    });
    words.collect()
}

/// The reason of a request that was blocked with the proxy's own answer: 403 `WAF_BLOCKED`.
pub(crate) fn blocked(decision: &Decision) -> &str {
    let Decision::Block(block) = decision else {
        panic!("{decision:?}");
    };
    assert!(block.status.is_none() && block.body.is_none() && block.headers.is_empty());
    block.reason.as_deref().unwrap()
}
