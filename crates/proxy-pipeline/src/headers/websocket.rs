//! Translation of the WebSocket handshake between HTTP/1.1, which has a key, and HTTP/2, which has
//! none. [RFC 6455 §4, RFC 8441 §5]

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;

/// The protocol's name in `Upgrade` and in `:protocol`.
pub(crate) const PROTOCOL: &str = "websocket";

const WEBSOCKET_GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// A `Sec-WebSocket-Key` from random bytes.
pub(crate) fn key(random: [u8; 16]) -> HeaderValue {
    let text = STANDARD.encode(random);
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// The value of `Sec-WebSocket-Accept`, which proves that the key was processed.
pub(crate) fn answer(key: &HeaderValue) -> HeaderValue {
    let hashed = digest(
        &SHA1_FOR_LEGACY_USE_ONLY,
        &[key.as_bytes(), WEBSOCKET_GUID].concat(),
    );
    let text = STANDARD.encode(hashed);
    HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Returns true if `given` is the right `Sec-WebSocket-Accept` for the key.
pub(crate) fn is_answered(key: &HeaderValue, given: Option<&HeaderValue>) -> bool {
    let expected = answer(key);
    given.is_some_and(|given| given.as_bytes().trim_ascii() == expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_of_the_standard_is_answered_as_it_says() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        let expected = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");

        assert_eq!(self::key(*b"the sample nonce"), key);
        assert_eq!(answer(&key), expected);
        assert!(is_answered(&key, Some(&expected)));
        assert!(!is_answered(&key, None));
        assert!(!is_answered(&expected, Some(&expected)));
    }
}
