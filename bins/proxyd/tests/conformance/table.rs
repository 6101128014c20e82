//! The result of each row: the client's response, and the upstream's requests.

use crate::doors::{self, Doors};
use crate::got::Got;
use crate::recorder::Recorder;
use crate::rows::{self, Row, Want};
use proxy_testkit::{Broken, RawClient, Response, Wire};
use std::net::SocketAddr;
use std::time::Duration;

/// Longer than any row takes; a row that hangs is an error.
const ROW_PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn each_request_is_refused_or_reaches_the_upstream_as_it_should() {
    judge_all(&Recorder::http1(), |doors| doors.plain, usize::MAX);
}

#[test]
fn each_request_that_comes_byte_by_byte_means_the_same() {
    judge_all(&Recorder::http1(), |doors| doors.plain, 1);
}

#[test]
fn each_request_over_tls_is_refused_or_reaches_the_upstream_as_it_should() {
    judge_all(&Recorder::http1(), |doors| doors.tls, usize::MAX);
}

#[test]
fn each_request_is_refused_or_reaches_an_upstream_by_http2_as_it_should() {
    judge_all(&Recorder::http2(), |doors| doors.plain, usize::MAX);
}

/// Sends each row in pieces of this many bytes.
fn judge_all(upstream: &Recorder, door: fn(&Doors) -> SocketAddr, piece: usize) {
    let doors = doors::open(upstream.address(), upstream.settings());
    let rows = rows::all();
    assert!(300 <= rows.len(), "only {} rows", rows.len());

    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let fault = judge(door(&doors), upstream, (row, piece)).err()?;
            Some(format!("{}: {fault}", row.name))
        })
        .collect();

    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
    // A late request would be here.
    let passed = rows.iter().map(|row| row.want.requests());
    assert_eq!(upstream.count(), passed.sum::<usize>());
}

fn judge(door: SocketAddr, upstream: &Recorder, (row, piece): (&Row, usize)) -> Result<(), String> {
    let before = upstream.count();
    let mut client = RawClient::connect(door);
    client.be_patient_for(ROW_PATIENCE);
    for piece in row.bytes.chunks(piece) {
        // A row that is refused early need not be read whole.
        if Wire::send(&mut client, piece).is_err() {
            break;
        }
    }
    if row.want == Want::CutOff {
        client.finish();
    }
    if let Want::Several { statuses, .. } = &row.want {
        several(&mut client, statuses)?;
        let seen = upstream.since(before);
        return row.want.compare(&seen);
    }
    let answer = answer(&mut client);
    row.want.compare(&upstream.since(before))?;
    match &row.want {
        Want::CutOff => match answer {
            Err(Broken::Silent) => Err("neither answered nor closed".to_owned()),
            Ok(answer) if answer.status < 400 => Err(format!("answered {}", answer.status)),
            Ok(_) | Err(_) => Ok(()),
        },
        Want::Refused(status) | Want::Told(status) => {
            let answer = answer.map_err(|broken| broken.to_string())?;
            if answer.status != *status {
                return Err(format!("answered {}, not {status}", answer.status));
            }
            if matches!(row.want, Want::Told(_)) {
                return Ok(());
            }
            if *status == 400 && answer.error_code() != "PARSE" {
                return Err(format!("code {}", answer.error_code()));
            }
            closed(&mut client)
        }
        Want::Passed { .. } | Want::Got(_) | Want::Several { .. } => {
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

impl Want {
    /// Number of requests that reach the upstream.
    fn requests(&self) -> usize {
        match self {
            Self::Refused(_) | Self::Told(_) | Self::CutOff => 0,
            Self::Passed { .. } | Self::Got(_) => 1,
            Self::Several { seen, .. } => seen.len(),
        }
    }

    /// Checks that the upstream got the expected requests.
    fn compare(&self, seen: &[Got]) -> Result<(), String> {
        if seen.len() != self.requests() {
            let texts: Vec<_> = seen.iter().map(|got| &got.text).collect();
            return Err(format!("the upstream saw {texts:?}"));
        }
        for got in seen {
            got.is_wholesome()?;
        }
        let wanted: Vec<_> = match self {
            Self::Refused(_) | Self::Told(_) | Self::CutOff => Vec::new(),
            Self::Passed { target, body } => vec![(*target, *body)],
            Self::Several { seen, .. } => seen.to_vec(),
            Self::Got(wanted) => return seen.iter().try_for_each(|got| wanted.check(got)),
        };
        let got = seen
            .iter()
            .map(|got| (got.target.as_str(), got.body.as_slice()));
        if !got.eq(wanted
            .into_iter()
            .map(|(target, body)| (target, body.as_bytes())))
        {
            let texts: Vec<_> = seen.iter().map(|got| &got.text).collect();
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
