//! The result of each row: the client's response, and the upstream's requests.

use crate::proxy_listeners::{self, ProxyListeners};
use crate::received_request::ReceivedRequest;
use crate::recorder::Recorder;
use crate::rows::{self, Expected, Row};
use proxy_testkit::{Broken, RawClient, Response, Wire};
use std::net::SocketAddr;
use std::time::Duration;

/// Longer than any row takes; a row that hangs is an error.
const ROW_TIMEOUT: Duration = Duration::from_secs(5);

#[test]
fn each_request_is_refused_or_reaches_the_upstream_as_it_should() {
    judge_all(&Recorder::http1(), |listeners| listeners.plain, usize::MAX);
}

#[test]
fn a_request_sent_byte_by_byte_is_read_the_same() {
    judge_all(&Recorder::http1(), |listeners| listeners.plain, 1);
}

#[test]
fn each_request_over_tls_is_refused_or_reaches_the_upstream_as_it_should() {
    judge_all(&Recorder::http1(), |listeners| listeners.tls, usize::MAX);
}

#[test]
fn each_request_is_refused_or_reaches_an_upstream_by_http2_as_it_should() {
    judge_all(&Recorder::http2(), |listeners| listeners.plain, usize::MAX);
}

/// Sends each row in pieces of this many bytes.
fn judge_all(upstream: &Recorder, proxy: fn(&ProxyListeners) -> SocketAddr, piece: usize) {
    let listeners = proxy_listeners::open(upstream.address(), upstream.settings());
    let rows = rows::all();
    assert!(300 <= rows.len(), "only {} rows", rows.len());

    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let fault = judge(proxy(&listeners), upstream, row, piece).err()?;
            Some(format!("{}: {fault}", row.name))
        })
        .collect();

    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
    // A late request would be here.
    let passed = rows.iter().map(|row| row.expected.requests());
    assert_eq!(upstream.count(), passed.sum::<usize>());
}

fn judge(proxy: SocketAddr, upstream: &Recorder, row: &Row, piece: usize) -> Result<(), String> {
    let before = upstream.count();
    let mut client = RawClient::connect(proxy);
    client.set_response_timeout(ROW_TIMEOUT);
    for piece in row.bytes.chunks(piece) {
        // A row that is refused early need not be read whole.
        if Wire::send(&mut client, piece).is_err() {
            break;
        }
    }
    if row.expected == Expected::CutOff {
        client.finish();
    }
    if let Expected::Several { statuses, .. } = &row.expected {
        several(&mut client, statuses)?;
        let seen = upstream.since(before);
        return row.expected.compare(&seen);
    }
    let answer = answer(&mut client);
    row.expected.compare(&upstream.since(before))?;
    match &row.expected {
        Expected::CutOff => match answer {
            Err(Broken::Silent) => Err("neither answered nor closed".to_owned()),
            Ok(answer) if answer.status < 400 => Err(format!("answered {}", answer.status)),
            Ok(_) | Err(_) => Ok(()),
        },
        Expected::Refused(status) | Expected::Answered(status) => {
            let answer = answer.map_err(|broken| broken.to_string())?;
            if answer.status != *status {
                return Err(format!("answered {}, not {status}", answer.status));
            }
            if matches!(row.expected, Expected::Answered(_)) {
                return Ok(());
            }
            if *status == 400 && answer.error_code() != "PARSE" {
                return Err(format!("code {}", answer.error_code()));
            }
            closed(&mut client)
        }
        Expected::Passed { .. } | Expected::Received(_) | Expected::Several { .. } => {
            let answer = answer.map_err(|broken| broken.to_string())?;
            match answer.status {
                200 => Ok(()),
                status => Err(format!("answered {status}: {}", answer.text())),
            }
        }
    }
}

/// Reads a response. A client that sends its body late may get 100 before.
fn answer(client: &mut RawClient) -> Result<Response, Broken> {
    match client.try_response() {
        Ok(interim) if interim.status == 100 => client.try_response(),
        other => other,
    }
}

/// Reads the responses in order, and asserts that no more follow.
fn several(client: &mut RawClient, statuses: &[u16]) -> Result<(), String> {
    for status in statuses {
        let answer = answer(client).map_err(|broken| broken.to_string())?;
        if answer.status != *status {
            let text = answer.text();
            return Err(format!("answered {}, not {status}: {text}", answer.status));
        }
    }
    client.finish();
    closed(client)
}

impl Expected {
    /// Number of requests that reach the upstream.
    fn requests(&self) -> usize {
        match self {
            Self::Refused(_) | Self::Answered(_) | Self::CutOff => 0,
            Self::Passed { .. } | Self::Received(_) => 1,
            Self::Several { seen, .. } => seen.len(),
        }
    }

    /// Checks that the upstream got the expected requests.
    fn compare(&self, seen: &[ReceivedRequest]) -> Result<(), String> {
        if seen.len() != self.requests() {
            let texts: Vec<_> = seen
                .iter()
                .map(|received_request| &received_request.text)
                .collect();
            return Err(format!("the upstream saw {texts:?}"));
        }
        for received_request in seen {
            received_request.check()?;
        }
        let wanted: Vec<_> = match self {
            Self::Refused(_) | Self::Answered(_) | Self::CutOff => Vec::new(),
            Self::Passed { target, body } => vec![(*target, *body)],
            Self::Several { seen, .. } => seen.to_vec(),
            Self::Received(wanted) => {
                return seen
                    .iter()
                    .try_for_each(|received_request| wanted.check(received_request));
            }
        };
        let received_request = seen.iter().map(|received_request| {
            (
                received_request.target.as_str(),
                received_request.body.as_slice(),
            )
        });
        if !received_request.eq(wanted
            .into_iter()
            .map(|(target, body)| (target, body.as_bytes())))
        {
            let texts: Vec<_> = seen
                .iter()
                .map(|received_request| &received_request.text)
                .collect();
            return Err(format!("the upstream saw {texts:?}"));
        }
        Ok(())
    }
}

fn closed(client: &mut RawClient) -> Result<(), String> {
    match client.rest() {
        Ok((bytes, _)) if bytes.is_empty() => Ok(()),
        Ok((bytes, _)) => Err(format!("then {:?}", String::from_utf8_lossy(&bytes))),
        Err(broken) => Err(format!("not closed: {broken}")),
    }
}
