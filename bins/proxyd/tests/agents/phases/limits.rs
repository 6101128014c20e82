//! Bodies that agents cannot inspect. The outcome does not depend on the failure mode.

use crate::stage::{ALL_EVENTS, AMPLE, Phase, all_events, post};
use crate::support::{Setup, reason};
use proxy_agent::AgentOutcome;
use proxy_coding::{Coding, CompressionLevels, Encoder};
use proxy_testkit::{AgentReply, FakeAgent, Upstream};
use std::thread;

fn gzip(plain: &[u8]) -> Vec<u8> {
    let levels = CompressionLevels {
        gzip: 6,
        brotli: 4,
        zstd: 3,
    };
    let mut encoder = Encoder::new(Coding::Gzip, levels).unwrap();
    let mut bytes = encoder.push(plain).unwrap().to_vec();
    bytes.extend_from_slice(&encoder.finish().unwrap());
    bytes
}

/// A body, and whether its head declares gzip.
type Content = (Vec<u8>, bool);

/// Outcomes, with a body that causes them under the limits below, and the status of the response.
fn bodies() -> Vec<(AgentOutcome, Content, u16)> {
    vec![
        (AgentOutcome::Oversize, (vec![b'x'; 3_000], false), 413),
        (
            AgentOutcome::Decompression,
            (gzip(&[b'x'; 6_000]), true),
            413,
        ),
        (AgentOutcome::BadCoding, (b"no gzip".to_vec(), true), 400),
    ]
}

const LIMITS: &str = "limits { max-agent-body-bytes 2000; max-decompressed-size-bytes 5000 }";

fn message(start_line: &str, (body, is_gzip): &Content) -> Vec<u8> {
    let coding = if *is_gzip {
        "Content-Encoding: gzip\r\n"
    } else {
        ""
    };
    let length = body.len();
    let head = format!("{start_line}\r\n{coding}Content-Length: {length}\r\n\r\n");
    [head.as_bytes(), body].concat()
}

fn play(phase: Phase, mode: &str, (outcome, content, status): (AgentOutcome, Content, u16)) {
    let what = format!("{outcome:?} at {phase:?}, {mode}");
    let is_response = phase.is_response();
    let large = message("HTTP/1.1 200 OK", &content);
    let upstream = Upstream::start(move |served| {
        while served.request().is_some() {
            if is_response {
                served.send(&large);
            } else {
                served.send(proxy_testkit::ok("served"));
            }
        }
    });
    let agent = FakeAgent::start(all_events(), |_| AgentReply::allow());
    let settings = format!("failure-mode \"{mode}\"; {AMPLE}; {ALL_EVENTS}");
    let proxyd = Setup::to(&upstream)
        .agent("waf", &agent, &settings)
        .top(LIMITS)
        .start();
    let request = if is_response {
        post().to_vec()
    } else {
        message("POST / HTTP/1.1\r\nHost: a.test", &content)
    };

    let response = proxyd.connect().ask(request);

    let status = if is_response { 502 } else { status };
    assert_eq!(response.status, status, "{what}: {}", response.text());
    let expected = outcome.reason().unwrap();
    assert_eq!(reason(&proxyd, &response), expected.as_str(), "{what}");
    let forwarded = upstream.requests().len();
    assert_eq!(forwarded, usize::from(is_response), "{what}");
}

#[test]
fn a_body_that_agents_cannot_be_shown_is_refused_in_either_direction() {
    thread::scope(|scope| {
        for phase in [Phase::RequestBody, Phase::ResponseBody] {
            for mode in ["closed", "open"] {
                for row in bodies() {
                    scope.spawn(move || play(phase, mode, row));
                }
            }
        }
    });
}
