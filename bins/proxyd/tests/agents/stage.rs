//! A proxy with an agent that misbehaves at one phase of a request.

use crate::support::Setup;
use agent_protocol::{BodyMode, ProxyMessage, Wants};
use proxy_testkit::{AgentReply, FakeAgent, Proxyd, RawClient, Response, Upstream, get, ok};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Timeout of agents that answer. Long, so that no test fails on a slow machine.
pub(crate) const AMPLE: &str = "timeout-ms 30000";

/// Phase of a request with an agent event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    RequestHeaders,
    RequestBody,
    ResponseHeaders,
    ResponseBody,
    Completion,
}

impl Phase {
    /// Phases in which the agent's answer is awaited.
    pub(crate) const ASKED: [Self; 4] = [
        Self::RequestHeaders,
        Self::RequestBody,
        Self::ResponseHeaders,
        Self::ResponseBody,
    ];

    /// Returns the phase of an event; `None` for other messages.
    pub(crate) fn from_message(event: &ProxyMessage<'_>) -> Option<Self> {
        match event {
            ProxyMessage::RequestHeaders(_) => Some(Self::RequestHeaders),
            ProxyMessage::RequestBody(_) => Some(Self::RequestBody),
            ProxyMessage::ResponseHeaders(_) => Some(Self::ResponseHeaders),
            ProxyMessage::ResponseBody(_) => Some(Self::ResponseBody),
            ProxyMessage::Completion(_) => Some(Self::Completion),
            _ => None,
        }
    }

    /// Value of the metrics label `event`.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::RequestHeaders => "request_headers",
            Self::RequestBody => "request_body",
            Self::ResponseHeaders => "response_headers",
            Self::ResponseBody => "response_body",
            Self::Completion => "completion",
        }
    }

    /// Returns true if the target already has the request.
    pub(crate) fn is_response(self) -> bool {
        matches!(self, Self::ResponseHeaders | Self::ResponseBody)
    }
}

/// Selects every event.
pub(crate) fn all_events() -> Wants {
    Wants {
        request_body: BodyMode::Buffered,
        response_headers: true,
        response_body: BodyMode::Buffered,
        completion: true,
    }
}

pub(crate) const ALL_EVENTS: &str =
    "events \"request-body\" \"response-headers\" \"response-body\"";

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// A request with a body, so that all phases occur.
pub(crate) fn post() -> &'static [u8] {
    b"POST / HTTP/1.1\r\nHost: a.test\r\nContent-Length: 4\r\n\r\nbody"
}

/// Selects a reply from a list; initially none, and the agent allows everything.
#[derive(Clone, Debug)]
pub(crate) struct Chosen(Arc<AtomicUsize>);

const NONE: usize = usize::MAX;

impl Chosen {
    pub(crate) fn none() -> Self {
        Self(Arc::new(AtomicUsize::new(NONE)))
    }

    pub(crate) fn choose(&self, index: usize) {
        self.0.store(index, Ordering::SeqCst);
    }

    pub(crate) fn clear(&self) {
        self.choose(NONE);
    }

    fn reply(&self, replies: &[AgentReply]) -> Option<AgentReply> {
        replies.get(self.0.load(Ordering::SeqCst)).cloned()
    }
}

/// A proxy, its upstream, and its agent `waf`.
pub(crate) struct Stage {
    pub(crate) agent: FakeAgent,
    pub(crate) chosen: Chosen,
    pub(crate) upstream: Upstream,
    pub(crate) proxyd: Proxyd,
}

impl Stage {
    /// Starts them. The agent receives every event, and allows all of them, except that it sends
    /// the selected one of `replies` at `phase`.
    pub(crate) fn start(phase: Phase, replies: Vec<AgentReply>, settings: &str) -> Self {
        Self::start_with(phase, replies, settings, |setup| setup)
    }

    /// Like [`Self::start`], with a set-up modified by `change`.
    pub(crate) fn start_with(
        phase: Phase,
        replies: Vec<AgentReply>,
        settings: &str,
        change: impl Fn(Setup) -> Setup,
    ) -> Self {
        let chosen = Chosen::none();
        let of_script = chosen.clone();
        let agent = FakeAgent::start(all_events(), move |event| {
            let is_due = Phase::from_message(event) == Some(phase);
            let reply = of_script.reply(&replies).filter(|_| is_due);
            reply.unwrap_or_else(AgentReply::allow)
        });
        let upstream = upstream();
        let settings = format!("{settings}; {ALL_EVENTS}");
        let setup = Setup::to(&upstream).agent("waf", &agent, &settings);
        let proxyd = change(setup).start();
        Self {
            agent,
            chosen,
            upstream,
            proxyd,
        }
    }

    /// Sends a request with a body on a new connection.
    pub(crate) fn ask(&self) -> Response {
        self.proxyd.connect().ask(post())
    }
}

/// Waits until a sample of the metrics has this value.
#[track_caller]
pub(crate) fn wait_for_metric(client: &mut RawClient, name: &str, value: f64) {
    let mut last = String::new();
    for _ in 0..2_000 {
        last = client.ask(get("/metrics", &[])).text();
        let line = last.lines().find(|line| line.starts_with(name));
        let text = line.and_then(|line| line.rsplit(' ').next());
        let found = text.map_or(0.0, |text| text.parse().unwrap());
        if f64::abs(found - value) < 0.1 {
            return;
        }
        std::thread::park_timeout(std::time::Duration::from_millis(10));
    }
    panic!("{name} did not become {value}:\n{last}");
}
