//! Redaction of query values in logged paths.

use super::escape::{self, MAX_TEXT_BYTES};

const REDACTED_VALUE: &[u8] = b"REDACTED";

/// Appends `path`, escaped, with the query values of `names` replaced.
///
/// Names are compared percent-decoded and ignoring case, so that another spelling of a name does
/// not expose its value.
#[inline]
pub(crate) fn push_path(out: &mut Vec<u8>, path: &[u8], names: &[String]) {
    if names.is_empty() {
        escape::push(out, path);
    } else {
        push_redacted(out, path, names, b";", escape::push);
    }
}

/// `path` with the query values of `names` replaced, not escaped.
pub(super) fn redacted(path: &[u8], names: &[String]) -> Vec<u8> {
    if names.is_empty() {
        return path.to_vec();
    }
    let mut out = Vec::with_capacity(path.len());
    let push = |out: &mut Vec<u8>, text: &[u8]| out.extend_from_slice(text);
    push_redacted(&mut out, path, names, b";", push);
    out
}

/// Appends the value of a header field, escaped, with the query values of `names` replaced. It may
/// be one URL, as of `Referer`, or a list of them.
pub(super) fn push_field(out: &mut Vec<u8>, value: &[u8], names: &[String]) {
    push_redacted(out, value, names, b";?#, <\"", escape::push);
}

/// Names are searched for after the first `?`: after each `&`, and after each of `separators`.
/// `push` appends text that is kept.
fn push_redacted(
    out: &mut Vec<u8>,
    path: &[u8],
    names: &[String],
    separators: &[u8],
    push: impl Fn(&mut Vec<u8>, &[u8]) + Copy,
) {
    let query = path.iter().position(|byte| *byte == b'?');
    let Some((before, query)) = query.and_then(|at| path.split_at_checked(at + 1)) else {
        push(out, path);
        return;
    };
    push(out, before);
    // A query is written pair by pair; the limit on a text applies to the whole query.
    let query = query.get(..MAX_TEXT_BYTES).unwrap_or(query);
    for part in query.split_inclusive(|byte| *byte == b'&') {
        push_part(out, part, names, separators, push);
    }
}

/// Appends the text between two `&`. Some servers also end a value at `;`, so a redacted value
/// extends to the `&`.
fn push_part(
    out: &mut Vec<u8>,
    part: &[u8],
    names: &[String],
    separators: &[u8],
    push: impl Fn(&mut Vec<u8>, &[u8]),
) {
    for pair in part.split_inclusive(|byte| separators.contains(byte)) {
        let equals = pair.iter().position(|byte| *byte == b'=');
        let name = equals.and_then(|at| pair.get(..at));
        let secret = name.filter(|name| names.iter().any(|wanted| is_same(name, wanted)));
        let Some(name) = secret else {
            push(out, pair);
            continue;
        };
        push(out, name);
        out.push(b'=');
        out.extend_from_slice(REDACTED_VALUE);
        if part.ends_with(b"&") {
            out.push(b'&');
        }
        return;
    }
}

fn is_same(name: &[u8], wanted: &str) -> bool {
    let decoded = Decoded(name).map(|byte| byte.to_ascii_lowercase());
    decoded.eq(wanted.bytes().map(|byte| byte.to_ascii_lowercase()))
}

/// The bytes of a percent-encoded text.
struct Decoded<'a>(&'a [u8]);

impl Iterator for Decoded<'_> {
    type Item = u8;

    fn next(&mut self) -> Option<u8> {
        if let [b'%', high, low, rest @ ..] = self.0
            && let (Some(high), Some(low)) = (hex(*high), hex(*low))
        {
            self.0 = rest;
            return Some(high << 4 | low);
        }
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

fn hex(digit: u8) -> Option<u8> {
    u8::try_from(char::from(digit).to_digit(16)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pushed(path: &str) -> String {
        let names = ["token".to_owned(), "api_key".to_owned()];
        let mut out = Vec::new();
        push_path(&mut out, path.as_bytes(), &names);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_values_of_the_names_are_replaced() {
        let cases = [
            ("/a", "/a"),
            ("/token=x", "/token=x"),
            ("/a?", "/a?"),
            ("/a?b=c&token=s3cret", "/a?b=c&token=REDACTED"),
            ("/a?token=s3cret&b=c", "/a?token=REDACTED&b=c"),
            ("/a?token=&z&token=x", "/a?token=REDACTED&z&token=REDACTED"),
            ("/a?token=s3c;ret&z", "/a?token=REDACTED&z"),
            ("/a?b=c;token=s3cret&z", "/a?b=c;token=REDACTED&z"),
            ("/a?token&b=token", "/a?token&b=token"),
            ("/a?tokens=x&atoken=y", "/a?tokens=x&atoken=y"),
            ("/a?b=?token=x", "/a?b=?token=x"),
            ("/a?token=x=y", "/a?token=REDACTED"),
        ];
        for (path, written) in cases {
            assert_eq!(pushed(path), written);
        }
    }

    #[test]
    fn another_spelling_of_the_name_does_not_help() {
        let cases = [
            ("/?TOKEN=x", "/?TOKEN=REDACTED"),
            ("/?%74oke%6E=x", "/?%74oke%6E=REDACTED"),
            ("/?api%5fkey=x", "/?api%5fkey=REDACTED"),
            ("/?%zztoken=x", "/?%zztoken=x"),
        ];
        for (path, written) in cases {
            assert_eq!(pushed(path), written);
        }
    }

    #[test]
    fn a_field_may_have_several_urls() {
        let names = ["token".to_owned(), "q".to_owned()];
        for (value, written) in [
            ("text/html;q=0.9", "text/html;q=0.9"),
            ("token=x", "token=x"),
            ("http://a/?b=c&token=x#y", "http://a/?b=c&token=REDACTED"),
            (
                "<http://a/?b>, </c?token=x>; rel=next",
                "<http://a/?b>, </c?token=REDACTED",
            ),
            ("/?%74oken=x&z", "/?%74oken=REDACTED&z"),
        ] {
            let mut out = Vec::new();
            push_field(&mut out, value.as_bytes(), &names);
            assert_eq!(String::from_utf8(out).unwrap(), written);
        }
    }

    #[test]
    fn a_query_of_many_pairs_is_cut_as_a_whole() {
        let written = pushed(&format!("/?{}", "a=b&".repeat(10_000)));

        assert_eq!(written.len(), MAX_TEXT_BYTES + 2);
    }
}
