//! Properties that hold for any input; run by the fuzz target and by the replay of its corpus.

use proxy_auth::{JwtKeys, TokenClaims, TokenRules};
use std::sync::LazyLock;

const GENUINE: &[u8] = include_bytes!("../../../fixtures/corpus/jwt_token/genuine");
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";
const NOW: i64 = 1_800_000_000;

static KEYS: LazyLock<JwtKeys> = LazyLock::new(|| JwtKeys::from_secret(SECRET).unwrap());

/// No token is accepted for anything but the claims of the one that the issuer signed.
pub(crate) fn jwt_token(token: &[u8]) {
    if let Some(claims) = verified(token) {
        assert_eq!(Some(claims), verified(GENUINE));
    }
    // Key sets come from outside too.
    drop(JwtKeys::from_jwks(token));
}

/// The claims of a token that is accepted.
pub(crate) fn verified(token: &[u8]) -> Option<TokenClaims> {
    let rules = TokenRules {
        issuer: "https://id.test/".to_owned(),
        audiences: vec!["api".to_owned()],
        algorithms: Vec::new(),
        clock_skew_secs: 60,
        max_bytes: 8_192,
    };
    rules.verify(token, &KEYS, NOW).ok()
}
