//! Denials at the beginning of a possibly incomplete `CheckResponse`.

use super::messages::{CheckResponse, DeniedHttpResponse, HttpResponse, Status};
use crate::http_answer::HttpAnswer;
use agent_protocol::is_protected;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// Field number of `CheckResponse.status`.
const STATUS: u32 = 1;
/// Field number of `CheckResponse.denied_response`.
const DENIED_RESPONSE: u32 = 2;

/// Finds a denial in the incomplete `message`: a status other than 0, or a `denied_response`.
/// Incomplete fields are omitted.
pub(super) fn denial(message: &[u8]) -> Option<HttpAnswer> {
    let (whole, cut) = split(message);
    let mut denies = false;
    let mut denied = DeniedHttpResponse::default();
    match CheckResponse::decode(whole) {
        Ok(CheckResponse {
            status,
            http_response,
        }) => {
            denies |= status.is_some_and(|status| status.code != 0);
            if let Some(HttpResponse::Denied(response)) = http_response {
                denies = true;
                denied = response;
            }
        }
        // A denial is valid even if it is malformed.
        Err(_) => denies |= has_denied_response(whole),
    }
    match cut {
        Some((STATUS, part)) => {
            let status = Status::decode(split(part).0).unwrap_or_default();
            denies |= status.code != 0;
        }
        Some((DENIED_RESPONSE, part)) => {
            denies = true;
            denied = DeniedHttpResponse::decode(split(part).0).unwrap_or_default();
        }
        Some(_) | None => {}
    }
    denies.then(|| answer(denied))
}

fn answer(denied: DeniedHttpResponse) -> HttpAnswer {
    let DeniedHttpResponse {
        status,
        headers,
        body,
    } = denied;
    let status = status.and_then(|status| u16::try_from(status.code).ok());
    HttpAnswer {
        // 0 is no status for clients: the denial becomes a 403.
        status: status.unwrap_or_default(),
        headers: headers
            .into_iter()
            // An invalid field does not invalidate the denial.
            .filter_map(|option| option.into_header().ok())
            .filter(|header| !is_protected(header.name()))
            .collect(),
        body,
    }
}

/// Splits `message` into its complete fields and an incomplete last field. Returns the number of
/// that field and the received part of its value, if its length is known.
fn split(message: &[u8]) -> (&[u8], Option<(u32, &[u8])>) {
    let mut rest = message;
    loop {
        let whole = message.len() - rest.len();
        match next(&mut rest) {
            Some(Field::Whole(_)) if !rest.is_empty() => {}
            Some(Field::Whole(_)) => return (message, None),
            cut => {
                let whole = message.get(..whole).unwrap_or_default();
                let cut = match cut {
                    Some(Field::Cut(number)) => Some((number, rest)),
                    Some(Field::Whole(_)) | None => None,
                };
                return (whole, cut);
            }
        }
    }
}

fn has_denied_response(mut fields: &[u8]) -> bool {
    while let Some(Field::Whole(number)) = next(&mut fields) {
        if number == DENIED_RESPONSE {
            return true;
        }
    }
    false
}

/// A field, identified by its number.
enum Field {
    Whole(u32),
    /// The value is incomplete: the rest of the input is its beginning.
    Cut(u32),
}

/// Reads one field. `None` at the end of the input, or if it ends within a key.
fn next(rest: &mut &[u8]) -> Option<Field> {
    let (number, wire_type) = decode_key(rest).ok()?;
    if wire_type != WireType::LengthDelimited {
        let skipped = skip_field(wire_type, number, rest, DecodeContext::default());
        return skipped.ok().map(|()| Field::Whole(number));
    }
    let length = usize::try_from(decode_varint(rest).ok()?).ok()?;
    match rest.get(length..) {
        Some(after) => {
            *rest = after;
            Some(Field::Whole(number))
        }
        None => Some(Field::Cut(number)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `status { code: 7 }`, and a `denied_response` of 401 with a field and a body.
    fn denying() -> Vec<u8> {
        let header = b"\x0a\x08\x0a\x03x-w\x12\x01n";
        let denied = [
            &b"\x0a\x03\x08\x91\x03"[..],
            b"\x12\x0a",
            header,
            b"\x1a\x02no",
        ]
        .concat();
        let length = u8::try_from(denied.len()).unwrap();
        [&b"\x0a\x02\x08\x07\x12"[..], &[length], &denied].concat()
    }

    #[test]
    fn a_denial_counts_from_its_status_on_wherever_the_message_is_cut() {
        let message = denying();

        for end in 0..=message.len() {
            let found = denial(&message[..end]);

            assert_eq!(found.is_some(), 4 <= end, "cut at {end}");
            if let Some(answer) = found {
                let status = if 11 <= end { 401 } else { 0 };
                assert_eq!(answer.status, status, "cut at {end}");
                let whole = end == message.len();
                assert_eq!(answer.body.is_empty(), !whole, "cut at {end}");
            }
        }
    }

    #[test]
    fn a_status_of_0_and_malformed_bytes_deny_nothing() {
        for message in [
            &b""[..],
            b"\x0a\x00",
            b"\x0a\x02\x08\x00",
            b"\x1a\x00",
            b"\xff\xff",
        ] {
            assert!(denial(message).is_none(), "{message:?}");
        }
    }

    #[test]
    fn a_denied_response_denies_though_the_status_is_0_or_its_text_cannot_be_read() {
        for message in [
            &b"\x0a\x02\x08\x00\x12\x00"[..],
            b"\x12\x00",
            b"\x12\x08\x12\x06\x0a\x04\x0a\x02\xff\xff",
        ] {
            assert!(denial(message).is_some(), "{message:?}");
        }
    }
}
