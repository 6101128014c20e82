//! The result of each row: the client's frames, and the upstream's requests.

use crate::frame_row::{Expected, Row, Seen};
use crate::frame_rows;
use crate::frames::{
    ACK, DATA, FrameEvent, Frames, GOAWAY, HEADERS, PING, PROTOCOL_ERROR, RST_STREAM, SETTINGS,
    opening,
};
use crate::hpack::status;
use crate::proxy_listeners::{self, ProxyListeners};
use crate::received_request::ReceivedRequest;
use proxy_testkit::{Request, Upstream};
use std::net::SocketAddr;

/// Sent last, and answered after all other replies.
const LAST_WORD: &[u8] = b"all said";

#[test]
fn each_row_of_frames_is_answered_as_the_standard_says_without_tls() {
    judge_all(|listeners| listeners.plain, usize::MAX);
}

#[test]
fn each_row_of_frames_that_come_in_small_pieces_is_answered_the_same() {
    judge_all(|listeners| listeners.plain, 5);
}

#[test]
fn each_row_of_frames_is_answered_as_the_standard_says_over_tls() {
    judge_all(|listeners| listeners.tls_h2, usize::MAX);
}

/// Sends each row in pieces of this many bytes.
fn judge_all(proxy: fn(&ProxyListeners) -> SocketAddr, piece: usize) {
    let upstream = Upstream::saying("ok");
    let listeners = proxy_listeners::open(upstream.address(), "");
    let rows = frame_rows::all();
    assert!(120 <= rows.len(), "only {} rows", rows.len());

    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let fault = judge(proxy(&listeners), &upstream, row, piece).err()?;
            Some(format!("{}: {fault}", row.name))
        })
        .collect();

    let count = wrong.len();
    assert!(wrong.is_empty(), "{count} wrong:\n{}", wrong.join("\n"));
    // A late request would be here.
    let passed = rows
        .iter()
        .filter(|row| matches!(row.expected, Expected::Passed(_)));
    assert_eq!(upstream.requests().len(), passed.count());
}

/// Maximum number of pieces of a row; long rows have larger pieces.
const MOST_PIECES: usize = 500;

/// The frames received for a row.
#[derive(Debug, Default)]
struct Report {
    goaway: Option<u32>,
    reset: Option<u32>,
    status: Option<u16>,
    answered: bool,
    last_word: bool,
    end: Option<End>,
}

/// The reason why receiving stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Closed,
    Silent,
}

impl Report {
    fn is_closed(&self) -> bool {
        self.end == Some(End::Closed)
    }
}

fn judge(proxy: SocketAddr, upstream: &Upstream, row: &Row, piece: usize) -> Result<(), String> {
    let (before, faults) = (upstream.requests().len(), upstream.faults().len());
    let mut client = Frames::connect(proxy);
    if row.begun {
        client.send(&opening(&[]));
    }
    for piece in row.bytes.chunks(piece.max(row.bytes.len() / MOST_PIECES)) {
        client.send(piece);
    }
    let report = match row.expected {
        Expected::Ignored => {
            client.send_frame(PING, 0, 0, LAST_WORD);
            listen(&mut client, row.stream, |report| report.last_word)
        }
        Expected::Ended(_) => listen(&mut client, row.stream, |_| false),
        Expected::Closed => {
            client.finish();
            listen(&mut client, row.stream, |_| false)
        }
        // A stream may have been answered before it is reset for the frames after.
        Expected::Reset(_) => listen(&mut client, row.stream, |report| report.reset.is_some()),
        Expected::Malformed | Expected::Refused | Expected::Answered(_) | Expected::Passed(_) => {
            listen(&mut client, row.stream, |report| {
                report.reset.is_some() || report.answered
            })
        }
    };
    let requests = upstream.requests();
    let seen = requests.get(before..).unwrap_or_default();
    compare(&report, seen, &row.expected)?;
    if let Some(fault) = upstream.faults().get(faults) {
        return Err(format!(
            "the upstream was sent what is not a request: {fault}"
        ));
    }
    // The end of one stream is not a reason to end other streams.
    if report.reset.is_some() && report.end.is_none() {
        client.send_frame(PING, 0, 0, LAST_WORD);
        let after = listen(&mut client, 0, |report| report.last_word);
        if !after.last_word {
            return Err(format!("{report:?}, then {after:?}"));
        }
    }
    Ok(())
}

/// Reads until it is enough, or the end.
fn listen(client: &mut Frames, stream: u32, enough: impl Fn(&Report) -> bool) -> Report {
    let mut report = Report::default();
    while !enough(&report) {
        let frame = match client.next() {
            FrameEvent::Frame(frame) => frame,
            FrameEvent::End => {
                report.end = Some(End::Closed);
                break;
            }
            FrameEvent::Silence => {
                report.end = Some(End::Silent);
                break;
            }
        };
        match frame.kind {
            GOAWAY => report.goaway = Some(frame.code()),
            SETTINGS if frame.flags & ACK == 0 => {}
            PING if frame.flags & ACK != 0 => report.last_word |= frame.payload == LAST_WORD,
            RST_STREAM if frame.stream == stream => report.reset = Some(frame.code()),
            HEADERS if frame.stream == stream && report.status.is_none() => {
                report.status = Some(status(&frame.payload));
                report.answered = frame.ends_stream();
            }
            DATA | HEADERS if frame.stream == stream => report.answered |= frame.ends_stream(),
            _ => {}
        }
    }
    report
}

fn compare(report: &Report, seen: &[Request], expected: &Expected) -> Result<(), String> {
    let ended = |codes: &[u32]| report.goaway.is_some_and(|code| codes.contains(&code));
    let reset = |codes: &[u32]| report.reset.is_some_and(|code| codes.contains(&code));
    let malformed = reset(&[PROTOCOL_ERROR]) || ended(&[PROTOCOL_ERROR]);
    let status = report.status.filter(|_| report.answered);
    let fulfilled = match expected {
        Expected::Passed(wanted) => return found(report, seen, wanted),
        Expected::Ended(codes) => ended(codes) && report.is_closed() && report.status.is_none(),
        Expected::Closed => report.is_closed() && report.status.is_none(),
        Expected::Reset(codes) => reset(codes) || ended(codes) && report.is_closed(),
        Expected::Malformed => malformed || status == Some(400),
        Expected::Refused => malformed || matches!(status, Some(400..=499 | 501)),
        Expected::Answered(wanted) => status == Some(*wanted),
        Expected::Ignored => report.last_word && report.reset.is_none() && report.goaway.is_none(),
    };
    if !fulfilled || report.end == Some(End::Silent) {
        return Err(format!("{report:?}, not {expected:?}"));
    }
    match seen {
        [] => Ok(()),
        [one, ..] => Err(format!(
            "the upstream saw {:?}",
            String::from_utf8_lossy(&one.raw)
        )),
    }
}

fn found(report: &Report, seen: &[Request], wanted: &Seen) -> Result<(), String> {
    if report.status != Some(wanted.status) || !report.answered {
        return Err(format!("{report:?}, and the upstream saw {}", seen.len()));
    }
    let [one] = seen else {
        return Err(format!("the upstream saw {} requests", seen.len()));
    };
    let one = ReceivedRequest::from(one);
    one.check()?;
    wanted.check(&one)
}
