//! Fields that `h2` accepts and HTTP/1.1 cannot represent. [RFC 9113 §8.2.1]

use http::header::CONTENT_LENGTH;
use http::{HeaderMap, HeaderName, HeaderValue};

/// A defect of fields received over HTTP/2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidField {
    /// A name is not a token.
    Name,
    /// A value begins or ends with white space.
    Value,
    /// `Content-Length` is not a number.
    Length,
    /// `Content-Length` occurs more than once.
    Lengths,
}

/// Checks each field of a head.
pub(crate) fn check(headers: &HeaderMap) -> Result<(), InvalidField> {
    let mut has_length = false;
    for (name, value) in headers {
        check_field(name, value)?;
        if name.as_str().len() == CONTENT_LENGTH.as_str().len() && *name == CONTENT_LENGTH {
            if std::mem::replace(&mut has_length, true) {
                return Err(InvalidField::Lengths);
            }
            if value.is_empty() || !value.as_bytes().iter().all(u8::is_ascii_digit) {
                return Err(InvalidField::Length);
            }
        }
    }
    Ok(())
}

/// Checks one header field, independent of its name.
#[inline]
pub(crate) fn check_field(name: &HeaderName, value: &HeaderValue) -> Result<(), InvalidField> {
    // The only byte that the `http` crate accepts in names although it is not a token character.
    // [RFC 9110 §5.6.2]
    if name.as_str().as_bytes().contains(&b'"') {
        return Err(InvalidField::Name);
    }
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let bytes = value.as_bytes();
    if is_space(bytes.first()) || is_space(bytes.last()) {
        return Err(InvalidField::Value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(fields: &[(&'static str, &'static str)]) -> Result<(), InvalidField> {
        let mut headers = HeaderMap::new();
        for (name, value) in fields {
            let name = HeaderName::from_lowercase(name.as_bytes()).unwrap();
            headers.append(name, HeaderValue::from_static(value));
        }
        check(&headers)
    }

    #[test]
    fn padding_is_seen_at_both_ends() {
        for (value, expected) in [
            (" a", Err(InvalidField::Value)),
            ("a\t", Err(InvalidField::Value)),
            ("a b", Ok(())),
            ("", Ok(())),
        ] {
            assert_eq!(checked(&[("x", value)]), expected, "{value:?}");
        }
    }

    #[test]
    fn a_quote_in_a_name_does_not_reach_http1() {
        assert_eq!(checked(&[("x\"y", "1")]), Err(InvalidField::Name));
    }

    #[test]
    fn a_length_stands_once_and_is_a_number() {
        assert_eq!(checked(&[("content-length", "05")]), Ok(()));
        for value in ["", "+5", "5,5", "0x5"] {
            assert_eq!(
                checked(&[("content-length", value)]),
                Err(InvalidField::Length)
            );
        }
        let twice = [("content-length", "5"), ("content-length", "5")];
        assert_eq!(checked(&twice), Err(InvalidField::Lengths));
    }
}
