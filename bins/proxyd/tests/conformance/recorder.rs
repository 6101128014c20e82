//! An upstream that answers `ok` and records its requests, by either protocol.

use crate::http2_upstream::Http2Upstream;
use crate::received_request::ReceivedRequest;
use proxy_testkit::{Journal, Upstream};
use std::net::SocketAddr;

pub(crate) enum Recorder {
    Http1(Upstream),
    Http2(Http2Upstream, Journal<ReceivedRequest>),
}

impl Recorder {
    pub(crate) fn http1() -> Self {
        Self::Http1(Upstream::saying("ok"))
    }

    pub(crate) fn http2() -> Self {
        let journal = Journal::default();
        let received_request = journal.clone();
        let upstream = Http2Upstream::start(move |mut request| {
            let received_request = received_request.clone();
            async move {
                // Only complete requests are recorded.
                if let Some((body, trailers)) = request.read().await {
                    received_request.push(ReceivedRequest::by_http2(
                        &request.head,
                        body,
                        &trailers,
                    ));
                    request.reply("ok");
                }
            }
        });
        Self::Http2(upstream, journal)
    }

    pub(crate) fn address(&self) -> SocketAddr {
        match self {
            Self::Http1(upstream) => upstream.address(),
            Self::Http2(upstream, _) => upstream.address,
        }
    }

    /// The settings that an upstream needs to be this recorder.
    pub(crate) fn settings(&self) -> &'static str {
        match self {
            Self::Http1(_) => "",
            Self::Http2(..) => "protocol \"h2\"",
        }
    }

    /// Number of complete requests.
    pub(crate) fn count(&self) -> usize {
        match self {
            Self::Http1(upstream) => upstream.requests().len(),
            Self::Http2(_, received_request) => received_request.len(),
        }
    }

    /// Requests from index `since` on.
    pub(crate) fn since(&self, since: usize) -> Vec<ReceivedRequest> {
        match self {
            Self::Http1(upstream) => {
                let requests = upstream.requests();
                let fresh = requests.get(since..).unwrap_or_default();
                fresh.iter().map(ReceivedRequest::from).collect()
            }
            Self::Http2(_, received_request) => received_request.entries().split_off(since),
        }
    }
}
