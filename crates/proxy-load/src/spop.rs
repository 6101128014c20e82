//! An agent's side of the Stream Processing Offload Protocol 2.0 of `HAProxy`, as far as the benchmarks use it.

use std::io;

/// Longest frame that the agent accepts, in bytes.
const MAX_FRAME_BYTES: u32 = 16_380;
const LENGTH_BYTES: usize = 4;
/// The type and the flags before the ids of a frame.
const PREFIX_BYTES: usize = 5;

const HAPROXY_HELLO: u8 = 1;
const HAPROXY_DISCONNECT: u8 = 2;
const NOTIFY: u8 = 3;
const AGENT_HELLO: u8 = 101;
const ACK: u8 = 103;

/// The flag of a frame that is not one of several fragments.
const FIN: u32 = 1;
const SET_VAR: u8 = 1;
const SET_VAR_ARGUMENTS: u8 = 3;
const SCOPE_TRANSACTION: u8 = 2;
const TYPE_UINT32: u8 = 3;
const TYPE_STRING: u8 = 8;
/// A Boolean's type, with its value in the upper bits.
const TRUE: u8 = 0x11;

/// The first frame of `input` without its length, and the bytes of both; `None` if it is not complete.
///
/// # Errors
/// It is longer than any that the agent accepts.
pub fn frame(input: &[u8]) -> io::Result<Option<(&[u8], usize)>> {
    let Some((length, rest)) = input.split_first_chunk::<LENGTH_BYTES>() else {
        return Ok(None);
    };
    let length = u32::from_be_bytes(*length);
    if length > MAX_FRAME_BYTES {
        return Err(malformed("a frame that is too long"));
    }
    let length = usize::try_from(length).map_err(io::Error::other)?;
    Ok(rest
        .get(..length)
        .map(|frame| (frame, LENGTH_BYTES + length)))
}

/// Appends the answer to a frame: a handshake is agreed to, and each request gets the variable `allow`.
///
/// # Errors
/// `HAProxy` ends the connection, or the frame is not of the protocol.
pub fn answer(frame: &[u8], output: &mut Vec<u8>) -> io::Result<()> {
    let kind = frame.first().copied();
    let ids = frame.get(PREFIX_BYTES..).unwrap_or_default();
    match kind {
        Some(HAPROXY_HELLO) => {
            let mut payload = Vec::new();
            text(&mut payload, "version");
            typed_text(&mut payload, "2.0");
            text(&mut payload, "max-frame-size");
            payload.push(TYPE_UINT32);
            varint(&mut payload, MAX_FRAME_BYTES.into());
            text(&mut payload, "capabilities");
            typed_text(&mut payload, "pipelining");
            // The ids of a handshake are 0.
            write(output, AGENT_HELLO, &[0, 0], &payload)
        }
        Some(NOTIFY) => {
            let stream = varint_length(ids)?;
            let both = stream + varint_length(ids.get(stream..).unwrap_or_default())?;
            let mut payload = vec![SET_VAR, SET_VAR_ARGUMENTS, SCOPE_TRANSACTION];
            text(&mut payload, "allow");
            payload.push(TRUE);
            write(output, ACK, ids.get(..both).unwrap_or_default(), &payload)
        }
        Some(HAPROXY_DISCONNECT) => Err(io::ErrorKind::ConnectionAborted.into()),
        _ => Err(malformed("a frame of an unknown type")),
    }
}

fn write(output: &mut Vec<u8>, kind: u8, ids: &[u8], payload: &[u8]) -> io::Result<()> {
    let length = PREFIX_BYTES + ids.len() + payload.len();
    let length = u32::try_from(length).map_err(io::Error::other)?;
    output.extend_from_slice(&length.to_be_bytes());
    output.push(kind);
    output.extend_from_slice(&FIN.to_be_bytes());
    output.extend_from_slice(ids);
    output.extend_from_slice(payload);
    Ok(())
}

fn text(output: &mut Vec<u8>, text: &str) {
    varint(output, text.len() as u64);
    output.extend_from_slice(text.as_bytes());
}

fn typed_text(output: &mut Vec<u8>, value: &str) {
    output.push(TYPE_STRING);
    text(output, value);
}

/// Four bits in the first byte beyond 240, then seven in each.
fn varint(output: &mut Vec<u8>, value: u64) {
    let low = |value: u64| value.to_le_bytes().first().copied().unwrap_or_default();
    if value < 240 {
        output.push(low(value));
        return;
    }
    output.push(low(value) | 0xf0);
    let mut rest = (value - 240) >> 4;
    while rest >= 128 {
        output.push(low(rest) | 0x80);
        rest = (rest - 128) >> 7;
    }
    output.push(low(rest));
}

/// The bytes of the number at the start of `bytes`.
fn varint_length(bytes: &[u8]) -> io::Result<usize> {
    if bytes.first().is_some_and(|first| *first < 240) {
        return Ok(1);
    }
    let mut rest = bytes.iter().skip(1);
    let last = rest.position(|byte| *byte < 128);
    last.map(|place| place + 2)
        .ok_or_else(|| malformed("a number that does not end"))
}

fn malformed(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_as_long_as_the_specification_says() {
        for (value, bytes) in [
            (0, vec![0]),
            (239, vec![239]),
            (240, vec![240, 0]),
            (2_287, vec![255, 127]),
            (2_288, vec![240, 128, 0]),
            (16_380, vec![252, 240, 6]),
        ] {
            let mut written = Vec::new();
            varint(&mut written, value);
            assert_eq!(written, bytes, "{value}");
            assert_eq!(varint_length(&written).unwrap(), bytes.len());
        }
        assert!(varint_length(&[]).is_err());
        assert!(varint_length(&[250, 200]).is_err());
    }

    #[test]
    fn a_request_gets_its_variable_under_its_own_ids() {
        let ids = [255, 127, 1];
        let mut frame = vec![NOTIFY];
        frame.extend_from_slice(&FIN.to_be_bytes());
        frame.extend_from_slice(&ids);
        frame.extend_from_slice(b"arguments");
        let mut answered = Vec::new();

        answer(&frame, &mut answered).unwrap();

        let (ack, length) = super::frame(&answered).unwrap().unwrap();
        assert_eq!(length, answered.len());
        assert_eq!(ack[0], ACK);
        assert_eq!(ack[5..8], ids);
        assert_eq!(&ack[8..], b"\x01\x03\x02\x05allow\x11");
    }
}
