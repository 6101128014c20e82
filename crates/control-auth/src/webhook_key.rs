//! Keys of webhooks: signatures as the specification of Standard Webhooks has them.

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign};
use base64::{Engine, engine::general_purpose::STANDARD};
use std::fmt;
use zeroize::Zeroizing;

/// Before a key in Base64.
const PREFIX: &str = "whsec_";

/// The key that a webhook's receiver verifies signatures with.
pub struct WebhookKey(Zeroizing<Vec<u8>>);

impl WebhookKey {
    /// A key of random bytes.
    pub fn new(bytes: Zeroizing<Vec<u8>>) -> Self {
        Self(bytes)
    }

    /// The bytes, to be sealed.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// The key as receivers take it, to be shown once.
    pub fn reveal(&self) -> Zeroizing<String> {
        Zeroizing::new(format!("{PREFIX}{}", STANDARD.encode(&*self.0)))
    }

    /// The header `webhook-signature` of a request with this `webhook-id`, `webhook-timestamp` in Unix seconds, and
    /// body.
    pub fn sign(&self, id: &str, timestamp: i64, body: &str) -> String {
        let signed = format!("{id}.{timestamp}.{body}");
        let signature = sign(&Key::new(HMAC_SHA256, &self.0), signed.as_bytes());
        format!("v1,{}", STANDARD.encode(signature))
    }
}

impl fmt::Debug for WebhookKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_the_specification() {
        // The example of the libraries of Standard Webhooks.
        let bytes = STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let key = WebhookKey::new(Zeroizing::new(bytes));
        assert_eq!(*key.reveal(), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
        let signature = key.sign(
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1_614_265_330,
            r#"{"test": 2432232314}"#,
        );
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{key:?}"), "WebhookKey(…)");
    }
}
