//! W3C trace context: the fields of a received trace, or of one that begins here.

use crate::headers::correlation::IdSource;
use crate::headers::indexed_headers::{IndexedHeaders, KnownHeaders};
use crate::headers::names;
use http::{HeaderMap, HeaderValue};
use proxy_telemetry::{SpanId, TraceId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TraceContext {
    pub(crate) trace_id: TraceId,
    /// The sender's span; `None` if the trace begins here.
    pub(crate) parent: Option<SpanId>,
    /// The span that a trace begins with; `None` for a received one.
    pub(crate) own: Option<SpanId>,
    /// Flags of version 00.
    pub(crate) flags: u8,
}

/// Share of the traces begun here that are sampled.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sampling {
    /// The share in units of 1 / `u64::MAX`.
    share: u64,
}

/// Length of version 00: four fields of 2, 32, 16 and 2 digits, and the hyphens between them.
const LENGTH: usize = 55;

const SAMPLED_FLAG: u8 = 1;
/// Flags of version 00, with the flag of level 2 for random trace IDs. [Trace Context Level 2
/// §3.2.2.5]
const KNOWN_FLAGS: u8 = 0b11;

impl TraceContext {
    pub(crate) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED_FLAG != 0
    }
}

impl Sampling {
    /// `percent` is 0 to 100.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "the share is positive, and the cast saturates"
    )]
    pub(crate) fn from_percent(percent: f64) -> Self {
        Self {
            share: (percent / 100.0 * u64::MAX as f64) as u64,
        }
    }

    fn samples(self, random: u64) -> bool {
        random < self.share || self.share == u64::MAX
    }
}

/// The trace context of the request. A request without a valid `traceparent` begins a trace if
/// traces begin here; its `tracestate` is then removed.
pub(crate) fn apply(
    headers: &mut IndexedHeaders,
    begins: Option<Sampling>,
    ids: &IdSource,
) -> Option<TraceContext> {
    if headers.has(KnownHeaders::TRACE_PARENT)
        && let Some(context) = read(headers.as_map())
    {
        return Some(context);
    }
    let sampling = begins?;
    let trace_id: TraceId = hex(u128::from_ne_bytes(ids.random_bytes()) | 1);
    let own = span_id(ids);
    let flags = u8::from(sampling.samples(ids.random()));
    let value = field(&trace_id, &own, flags)?;
    headers.remove(&names::TRACE_STATE);
    headers.insert(names::TRACE_PARENT, value);
    Some(TraceContext {
        trace_id,
        parent: None,
        own: Some(own),
        flags,
    })
}

/// A new span's ID, which is never 0.
pub(crate) fn span_id(ids: &IdSource) -> SpanId {
    last_half(hex(u128::from(ids.random() | 1)))
}

/// A `traceparent` of version 00.
pub(crate) fn field(trace_id: &TraceId, parent: &SpanId, flags: u8) -> Option<HeaderValue> {
    let flags = flags & KNOWN_FLAGS;
    let flags = [b'0', b'0' + flags];
    let text = [b"00-", &trace_id[..], b"-", &parent[..], b"-", &flags[..]].concat();
    HeaderValue::from_bytes(&text).ok()
}

/// The only `traceparent` of `headers`, if it is valid. [Trace Context §3.2]
fn read(headers: &HeaderMap) -> Option<TraceContext> {
    let mut values = headers.get_all(names::TRACE_PARENT).iter();
    let (value, None) = (values.next()?.as_bytes(), values.next()) else {
        return None;
    };
    let (known, rest) = value.split_at_checked(LENGTH)?;
    let mut fields = known.split(|byte| *byte == b'-');
    let (version, id, parent, flags) = (
        fields.next()?,
        fields.next()?,
        fields.next()?,
        fields.next()?,
    );
    let has_valid_end = match version {
        b"00" => rest.is_empty(),
        b"ff" => false,
        _ => rest.is_empty() || rest.starts_with(b"-"),
    };
    let is_valid = has_valid_end
        && fields.next().is_none()
        && is_hex(version, 2)
        && is_hex(parent, 16)
        && is_hex(flags, 2)
        && is_hex(id, 32)
        && is_nonzero(id)
        && is_nonzero(parent);
    if !is_valid {
        return None;
    }
    let flags = u8::from_str_radix(str::from_utf8(flags).ok()?, 16).ok()?;
    Some(TraceContext {
        trace_id: id.try_into().ok()?,
        parent: Some(parent.try_into().ok()?),
        own: None,
        flags,
    })
}

fn is_hex(field: &[u8], digits: usize) -> bool {
    let is_digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    field.len() == digits && field.iter().all(is_digit)
}

/// Returns true unless the field is all zeros, which means absent.
fn is_nonzero(field: &[u8]) -> bool {
    field.iter().any(|byte| *byte != b'0')
}

/// 32 hexadecimal digits.
fn hex(number: u128) -> TraceId {
    let mut digits = [0; 32];
    for (place, digit) in digits.iter_mut().rev().enumerate() {
        let value = (number >> (4 * place)) & 0xF;
        let value = u8::try_from(value).unwrap_or_default();
        *digit = match value {
            0..=9 => b'0' + value,
            _ => b'a' + value - 10,
        };
    }
    digits
}

/// The last 16 of 32 digits.
fn last_half(digits: TraceId) -> SpanId {
    let mut half = [b'0'; 16];
    for (place, digit) in half.iter_mut().zip(digits.into_iter().skip(16)) {
        *place = digit;
    }
    half
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

    fn headers(lines: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(names::TRACE_PARENT, line.parse().unwrap());
        }
        headers
    }

    #[test]
    fn a_valid_traceparent_names_its_trace() {
        for valid in [
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later",
        ] {
            let context = read(&headers(&[valid])).unwrap();
            assert_eq!(&context.trace_id[..], TRACE.as_bytes(), "{valid}");
            assert_eq!(context.parent, Some(*b"00f067aa0ba902b7"));
            assert_eq!(context.is_sampled(), !valid.ends_with("00"), "{valid}");
        }
    }

    #[test]
    fn an_invalid_traceparent_names_no_trace() {
        for invalid in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-later",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01later",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "0--4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
        ] {
            assert_eq!(read(&headers(&[invalid])), None, "{invalid}");
        }
        let valid = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(read(&headers(&[valid, valid])), None);
    }

    #[test]
    fn a_field_of_a_later_version_is_sent_on_as_the_known_one() {
        let later = "cc-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-ff-later";
        let context = read(&headers(&[later])).unwrap();
        let own = *b"1111111111111111";
        let sent = field(&context.trace_id, &own, context.flags).unwrap();
        assert_eq!(sent, format!("00-{TRACE}-1111111111111111-03"));
    }

    #[test]
    fn a_trace_that_begins_here_is_valid_and_sampled_by_its_share() {
        let ids = IdSource::new([7; 32]);
        for (percent, sampled) in [(0.0, 0..=0), (50.0, 400..=600), (100.0, 1_000..=1_000)] {
            let mut count = 0;
            for _ in 0..1_000 {
                let mut headers = IndexedHeaders::default();
                let begun = apply(&mut headers, Some(Sampling::from_percent(percent)), &ids);
                let begun = begun.unwrap();
                let sent = read(headers.as_map()).unwrap();
                assert_eq!((sent.trace_id, sent.flags), (begun.trace_id, begun.flags));
                assert_eq!((sent.parent, begun.parent), (begun.own, None));
                let value = headers
                    .as_map()
                    .get(names::TRACE_PARENT)
                    .unwrap()
                    .as_bytes();
                count += usize::from(value.ends_with(b"-01"));
            }
            assert!(sampled.contains(&count), "{percent}: {count}");
        }
    }
}
