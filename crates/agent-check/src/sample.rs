//! The sample requests of the cases.

use crate::client::{Client, ExpectedDecision};
use crate::settings::Settings;
use agent_protocol::{
    BodyChunk, BodyData, BodyMode, Cancel, Completion, Decision, EventKind, Header, MAX_PART_BYTES,
    ProxyMessage, RequestHeaders, RequestId, ResponseHeaders, Text, Wants,
};
use std::borrow::Cow;

/// Pieces of the body in the mode `chunks`; the last is empty, as after a chunked body.
const PIECES: [&[u8]; 3] = [b"name=value&", b"bytes=\x00\xff\xfe", b""];

/// The head of a request with these headers in addition to the usual ones.
pub(crate) fn request(
    settings: &Settings,
    id: RequestId,
    headers: &[Header<'static>],
    has_body: bool,
) -> RequestHeaders<'static> {
    let mut all = vec![
        Header::parsed("host", b"check.example"),
        Header::parsed("user-agent", b"proxyd-agent-check"),
        Header::parsed("accept", b"*/*"),
    ];
    if has_body {
        let form = b"application/x-www-form-urlencoded";
        all.push(Header::parsed("content-type", form));
        all.push(Header::parsed("transfer-encoding", b"chunked"));
    }
    all.extend(settings.headers.iter().cloned());
    all.extend(headers.iter().cloned());
    RequestHeaders {
        id,
        seq: 0,
        timeout_ms: u64::try_from(settings.timeout.as_millis()).unwrap_or(u64::MAX),
        correlation_id: format!("check-{id}").into(),
        route: "check".into(),
        client_ip: "192.0.2.1".into(),
        client_port: Some(50_000),
        tls: None,
        method: if has_body { "POST" } else { "GET" }.into(),
        scheme: "http".into(),
        authority: "check.example".into(),
        target: "/check?a=1".into(),
        http_version: "HTTP/1.1".into(),
        headers: all,
        has_body,
        metadata: Cow::default(),
    }
}

/// Sends a request's head and awaits its decision.
pub(crate) fn ask(client: &mut Client, event: RequestHeaders<'static>) -> Result<Decision, String> {
    let awaited = ExpectedDecision {
        id: event.id,
        seq: event.seq,
        event: EventKind::RequestHeaders,
        is_chunk: false,
    };
    client.send(&ProxyMessage::RequestHeaders(event))?;
    client.decision(awaited)
}

/// A plain request is decided: the agent works.
pub(crate) fn plain(client: &mut Client, settings: &Settings) -> Result<(), String> {
    let id = client.next_id();
    ask(client, request(settings, id, &[], false))?;
    Ok(())
}

/// Sends the end of a request, if the agent requests it.
pub(crate) fn complete(client: &mut Client, wants: Wants, id: RequestId) -> Result<(), String> {
    if !wants.completion {
        return Ok(());
    }
    client.send(&ProxyMessage::Completion(Completion {
        id,
        status: Some(200),
        reason: None,
        request_bytes: 18,
        response_bytes: 18,
        duration_ms: 5,
    }))
}

/// The proxy needs no further decision on a request.
pub(crate) fn cancel(client: &mut Client, id: RequestId) -> Result<(), String> {
    client.send(&ProxyMessage::Cancel(Cancel { id }))
}

/// A whole request in progress: events are sent as requested by the agent.
pub(crate) struct Exchange<'a> {
    client: &'a mut Client,
    wants: Wants,
    id: RequestId,
    seq: u32,
    timeout_ms: u64,
    /// Events that the agent no longer needs.
    skipped: Vec<EventKind>,
    /// The decision that ended the request before its time.
    pub(crate) refused: Option<&'static str>,
}

impl<'a> Exchange<'a> {
    /// Sends the head of a request with a body.
    pub(crate) fn begin(
        client: &'a mut Client,
        settings: &Settings,
        wants: Wants,
    ) -> Result<Self, String> {
        let id = client.next_id();
        let event = request(settings, id, &[], true);
        let timeout_ms = event.timeout_ms;
        let decision = ask(client, event)?;
        let mut exchange = Self {
            client,
            wants,
            id,
            seq: 0,
            timeout_ms,
            skipped: Vec::new(),
            refused: None,
        };
        exchange.apply(decision);
        Ok(exchange)
    }

    fn apply(&mut self, decision: Decision) {
        match decision {
            Decision::Allow(allow) => self.skipped.extend(allow.skip),
            Decision::Block(_) | Decision::Redirect(_) | Decision::Challenge(_) => {
                self.refused = Some(decision.name());
            }
        }
    }

    fn is_over(&self, kind: EventKind) -> bool {
        self.refused.is_some() || self.skipped.contains(&kind)
    }

    /// Sends the request's body, or the response's.
    pub(crate) fn body(&mut self, kind: EventKind, truncated: bool) -> Result<(), String> {
        let mode = if kind == EventKind::RequestBody {
            self.wants.request_body
        } else {
            self.wants.response_body
        };
        match mode {
            BodyMode::None => Ok(()),
            BodyMode::Buffered => {
                let whole = PIECES.concat();
                self.piece(kind, &whole, true, truncated, false)
            }
            BodyMode::Chunks => {
                for (index, piece) in PIECES.iter().enumerate() {
                    let last = index + 1 == PIECES.len();
                    self.piece(kind, piece, last, last && truncated, true)?;
                }
                Ok(())
            }
        }
    }

    fn piece(
        &mut self,
        kind: EventKind,
        data: &[u8],
        last: bool,
        truncated: bool,
        is_chunk: bool,
    ) -> Result<(), String> {
        if self.is_over(kind) {
            return Ok(());
        }
        self.seq += 1;
        self.send_piece(kind, data, last, truncated)?;
        self.await_decision(kind, is_chunk)
    }

    fn send_piece(
        &mut self,
        kind: EventKind,
        data: &[u8],
        last: bool,
        truncated: bool,
    ) -> Result<(), String> {
        let chunk = BodyChunk {
            id: self.id,
            seq: self.seq,
            timeout_ms: self.timeout_ms,
            data: BodyData(Cow::Borrowed(data)),
            last,
            truncated,
            decoded: false,
        };
        let message = if kind == EventKind::RequestBody {
            ProxyMessage::RequestBody(chunk)
        } else {
            ProxyMessage::ResponseBody(chunk)
        };
        self.client.send(&message)
    }

    /// Sends the request's body in parts, with another request between them.
    pub(crate) fn parts(&mut self, settings: &Settings) -> Result<(), String> {
        let kind = EventKind::RequestBody;
        if self.is_over(kind) {
            return Ok(());
        }
        let part = vec![b'x'; MAX_PART_BYTES];
        self.seq += 1;
        self.send_piece(kind, &part, false, false)?;
        let other = self.client.next_id();
        ask(self.client, request(settings, other, &[], false))?;
        complete(self.client, self.wants, other)?;
        self.send_piece(kind, &part, false, false)?;
        self.client.expect_quiet()?;
        self.send_piece(kind, b"end", true, false)?;
        self.await_decision(kind, false)
    }

    /// Sends the first part of the request's body, and cancels the request.
    pub(crate) fn cancelled_parts(&mut self) -> Result<(), String> {
        self.seq += 1;
        if !self.is_over(EventKind::RequestBody) {
            let part = vec![b'x'; MAX_PART_BYTES];
            self.send_piece(EventKind::RequestBody, &part, false, false)?;
        }
        cancel(self.client, self.id)
    }

    /// Sends the response's head.
    pub(crate) fn response(&mut self) -> Result<(), String> {
        let kind = EventKind::ResponseHeaders;
        if !self.wants.response_headers || self.is_over(kind) {
            return Ok(());
        }
        self.seq += 1;
        let event = ResponseHeaders {
            id: self.id,
            seq: self.seq,
            timeout_ms: self.timeout_ms,
            upstream: Some("check".into()),
            status: 200,
            http_version: "HTTP/1.1".into(),
            headers: vec![
                Header::parsed("content-type", b"text/plain"),
                Header::parsed("set-cookie", b"a=1"),
                Header::parsed("set-cookie", b"b=\xe9"),
            ],
            has_body: true,
        };
        self.client.send(&ProxyMessage::ResponseHeaders(event))?;
        self.await_decision(kind, false)
    }

    fn await_decision(&mut self, event: EventKind, is_chunk: bool) -> Result<(), String> {
        let decision = self.client.decision(ExpectedDecision {
            id: self.id,
            seq: self.seq,
            event,
            is_chunk,
        })?;
        self.apply(decision);
        Ok(())
    }

    /// Ends the request. Returns the decision that ended it before its time.
    pub(crate) fn end(self) -> Result<Option<&'static str>, String> {
        if !self.skipped.contains(&EventKind::Completion) {
            complete(self.client, self.wants, self.id)?;
        }
        Ok(self.refused)
    }
}

/// Header lines that an agent may not stumble over.
pub(crate) fn unusual_headers() -> Vec<Header<'static>> {
    vec![
        Header::parsed("cookie", b"a=1"),
        Header::parsed("cookie", b"b=2"),
        Header::parsed("x-latin", b"caf\xe9 \xff"),
        Header::parsed("x-empty", b""),
    ]
}

/// A target that is not UTF-8.
pub(crate) fn unusual_target() -> Text<'static> {
    Text(Cow::Borrowed(b"/caf\xe9?q=%00\xff"))
}
