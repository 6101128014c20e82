//! Connections: chunking of bytes, faults that break them, and faults that must not.

use crate::case::{Case, Outcome};
use crate::client::{Client, ExpectedDecision};
use crate::sample::{plain, request};
use crate::settings::Settings;
use agent_protocol::{Encoding, EventKind, FrameType, ProxyMessage};

/// Number of concurrent connections: the proxy has a few for each of its workers.
const CONNECTIONS: usize = 8;
/// Bytes that arrive one by one: the length, the type, and some of the payload.
const SINGLE_BYTES: usize = 7;
/// Bytes of each further piece.
const PIECE_BYTES: usize = 100;

pub(crate) const CASES: &[Case] = &[
    Case {
        name: "split-frames",
        rule: "a frame that arrives in pieces is read as one",
        run: split,
    },
    Case {
        name: "several-connections",
        rule: "several connections are served at the same time",
        run: several,
    },
    Case {
        name: "half-frame",
        rule: "a connection that ends in the middle of a frame harms no other",
        run: half,
    },
    Case {
        name: "too-long-frame",
        rule: "a frame longer than announced ends the connection, and harms no other",
        run: too_long,
    },
    Case {
        name: "unknown-type",
        rule: "a frame of an unknown type ends the connection, and harms no other",
        run: unknown_type,
    },
    Case {
        name: "broken-payload",
        rule: "a payload that is not an object ends the connection, and harms no other",
        run: broken_payload,
    },
    Case {
        name: "no-hello",
        rule: "a connection that begins without a hello is ended, and harms no other",
        run: no_hello,
    },
];

fn open(settings: &Settings) -> Result<Client, String> {
    Client::greet(settings, &[Encoding::Json]).map(|(client, _)| client)
}

fn split(settings: &Settings) -> Outcome {
    let mut client = open(settings)?;
    let id = client.next_id();
    let event = ProxyMessage::RequestHeaders(request(settings, id, &[], false));
    let frame = client.frame(&event)?;
    let (first, rest) = frame.split_at(SINGLE_BYTES.min(frame.len()));
    let mut pieces: Vec<&[u8]> = first.chunks(1).collect();
    pieces.extend(rest.chunks(PIECE_BYTES));
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        client.send_raw(piece)?;
        client.pause()?;
    }
    client.send_raw(last)?;
    client.decision(ExpectedDecision {
        id,
        seq: 0,
        event: EventKind::RequestHeaders,
        is_chunk: false,
    })?;
    Ok(None)
}

fn several(settings: &Settings) -> Outcome {
    let clients: Result<Vec<Client>, String> = (0..CONNECTIONS).map(|_| open(settings)).collect();
    // In the reverse order of opening, so that none waits for another.
    for client in clients?.iter_mut().rev() {
        plain(client, settings)?;
    }
    Ok(None)
}

fn half(settings: &Settings) -> Outcome {
    let mut other = open(settings)?;
    let mut client = open(settings)?;
    let id = client.next_id();
    let frame = client.frame(&ProxyMessage::RequestHeaders(request(
        settings,
        id,
        &[],
        false,
    )))?;
    client.send_raw(frame.get(..frame.len() / 2).unwrap_or_default())?;
    drop(client);
    survives(&mut other, settings)
}

fn too_long(settings: &Settings) -> Outcome {
    let mut bytes = u32::MAX.to_be_bytes().to_vec();
    bytes.push(FrameType::RequestHeaders.code());
    ends(settings, &bytes)
}

fn unknown_type(settings: &Settings) -> Outcome {
    ends(settings, &[0, 0, 0, 3, 0x66, b'{', b'}'])
}

fn broken_payload(settings: &Settings) -> Outcome {
    let mut bytes = vec![0, 0, 0, 8, FrameType::RequestHeaders.code()];
    bytes.extend_from_slice(b"garbage");
    ends(settings, &bytes)
}

/// The bytes end a connection after its handshake, and no other.
fn ends(settings: &Settings, bytes: &[u8]) -> Outcome {
    let mut other = open(settings)?;
    let mut client = open(settings)?;
    client.send_raw(bytes)?;
    client.expect_end()?;
    survives(&mut other, settings)
}

fn no_hello(settings: &Settings) -> Outcome {
    let mut other = open(settings)?;
    let mut client = Client::connect(settings)?;
    let id = client.next_id();
    client.send(&ProxyMessage::RequestHeaders(request(
        settings,
        id,
        &[],
        false,
    )))?;
    client.expect_end()?;
    survives(&mut other, settings)
}

fn survives(other: &mut Client, settings: &Settings) -> Outcome {
    plain(other, settings).map_err(|error| format!("another connection: {error}"))?;
    let mut next = open(settings).map_err(|error| format!("the next connection: {error}"))?;
    plain(&mut next, settings).map_err(|error| format!("the next connection: {error}"))?;
    Ok(None)
}
