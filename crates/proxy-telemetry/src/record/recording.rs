//! The part of a recorded request that the access log leaves out: its listener and its header
//! fields.

use super::access::{AccessFormat, AccessLogHead, AccessLogRequest, HeadBufferPool};
use super::json::Line;
use super::{escape, redact};
use std::hash::{BuildHasher, RandomState};

/// The form in which heads are recorded.
#[derive(Clone, Debug)]
pub struct RecordingFormat {
    /// The form of the part that access records have, too.
    pub head: AccessFormat,
    /// Returns true if a field of this name, in lower case, is a credential. Its value is recorded
    /// as a digest.
    pub is_credential: fn(&str) -> bool,
    /// Names of further fields with values recorded as digests, in lower case.
    pub redact_headers: Vec<String>,
    /// The key of digests: equal values have equal digests while the process runs, and cannot be
    /// guessed without it.
    pub key: RandomState,
}

/// Listener and header fields of a recorded request.
#[derive(Clone, Debug)]
pub struct RecordedFields<'a, H> {
    /// Name of the listener.
    pub listener: &'a str,
    /// Names, which may have capitals, with their values; values of one name are adjacent.
    pub headers: H,
}

impl RecordingFormat {
    /// Returns true if values of the field `name` are recorded as digests. `lower` is the name in
    /// lower case, cut at [`escape::MAX_TEXT_BYTES`]: a longer name is secret by precaution.
    fn is_secret(&self, name: &[u8], lower: &[u8]) -> bool {
        let mut own = self.redact_headers.iter();
        name.len() > escape::MAX_TEXT_BYTES
            || own.any(|redacted| redacted.as_bytes().eq_ignore_ascii_case(name))
            || str::from_utf8(lower).is_ok_and(self.is_credential)
    }
}

impl<'a, H: Iterator<Item = (&'a [u8], &'a [u8])>> RecordedFields<'_, H> {
    /// Appends the fields after earlier ones of the same object.
    pub(super) fn write(self, line: &mut Line<'_>, format: &RecordingFormat) {
        let Self { listener, headers } = self;
        line.text(",\"listener\":\"", listener.as_bytes());
        line.raw(",\"headers\":{");
        let mut last: Option<&[u8]> = None;
        let mut is_secret = false;
        for (name, value) in headers {
            if last.is_some_and(|last| last.eq_ignore_ascii_case(name)) {
                line.raw(",\"");
            } else {
                line.raw(if last.is_some() { "],\"" } else { "\"" });
                let from = line.0.len();
                escape::push(line.0, name);
                let written = line.0.get_mut(from..).unwrap_or_default();
                written.make_ascii_lowercase();
                is_secret = format.is_secret(name, written);
                line.raw("\":[\"");
            }
            if is_secret {
                let digest = format.key.hash_one(value);
                line.raw(&format!("digest:{digest:016x}"));
            } else {
                redact::push_field(line.0, value, &format.head.redact_query);
            }
            line.raw("\"");
            last = Some(name);
        }
        line.raw(if last.is_some() { "]}" } else { "}" });
    }
}

impl AccessLogRequest<'_> {
    /// Encodes the head with listener and header fields into a buffer of `pool`.
    pub(crate) fn recorded_head<'h, H: Iterator<Item = (&'h [u8], &'h [u8])>>(
        &self,
        fields: RecordedFields<'_, H>,
        format: &RecordingFormat,
        pool: &mut HeadBufferPool,
    ) -> AccessLogHead {
        let mut head = self.access_head(&format.head, pool);
        fields.write(&mut Line(head.bytes_mut()), format);
        head
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(headers: &[(&'static str, &'static str)], format: &RecordingFormat) -> String {
        let mut out = Vec::new();
        let fields = RecordedFields {
            listener: "main",
            headers: headers
                .iter()
                .map(|(name, value)| (name.as_bytes(), value.as_bytes())),
        };
        fields.write(&mut Line(&mut out), format);
        String::from_utf8(out).unwrap()
    }

    fn format() -> RecordingFormat {
        RecordingFormat {
            head: AccessFormat::default(),
            is_credential: |name| name == "authorization",
            redact_headers: vec!["x-tenant".to_owned()],
            key: RandomState::new(),
        }
    }

    #[test]
    fn values_of_one_name_are_a_list() {
        let headers = [("Accept", "a"), ("accept", "b"), ("TE", "\"x\"")];
        assert_eq!(
            written(&headers, &format()),
            r#","listener":"main","headers":{"accept":["a","b"],"te":["\"x\""]}"#
        );
        assert_eq!(
            written(&[], &format()),
            r#","listener":"main","headers":{}"#
        );
    }

    #[test]
    fn credentials_are_digests_that_depend_on_the_key() {
        let format = format();
        let headers = [
            ("Authorization", "Bearer s3cret"),
            ("authorization", "Bearer s3cret"),
            ("X-Tenant", "Bearer s3cret"),
        ];
        let text = written(&headers, &format);
        assert!(!text.contains("s3cret"), "{text}");
        let digests: Vec<&str> = text
            .split("digest:")
            .skip(1)
            .map(|rest| &rest[..16])
            .collect();
        assert_eq!(digests, [digests[0]; 3], "the same value");
        let other = written(&headers, &self::format());
        assert!(!other.contains(digests[0]), "another key");
    }
}
