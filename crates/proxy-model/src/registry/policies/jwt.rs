//! JSON Web Tokens.

use super::basic_auth::realm;
use crate::policies::KeySetUrl;
use crate::registry::kind::{Block, Pair};
use crate::registry::number::{Size, Time};
use crate::registry::spec::{DefaultValue, MachinePart, Repeatable, Required, Unset};
use crate::registry::table::{
    block, choice, file, flag, pair, settings, size, text, time_from, word, words, written,
};
use crate::registry::text::{Text, Written};
use crate::registry::word::{Choice, ChoiceWord, Flag};
use http::HeaderName;
use proxy_auth::JwtAlgorithm;
use std::path::PathBuf;
use std::time::Duration;

const BY: &str = "proxy-server";

const ALGORITHMS: &[ChoiceWord<JwtAlgorithm>] = &[
    word("HS256", JwtAlgorithm::Hs256, "HMAC, SHA-256: `hmac-file`"),
    word("HS384", JwtAlgorithm::Hs384, "HMAC, SHA-384: `hmac-file`"),
    word("HS512", JwtAlgorithm::Hs512, "HMAC, SHA-512: `hmac-file`"),
    word("RS256", JwtAlgorithm::Rs256, "RSA, PKCS #1, SHA-256"),
    word("RS384", JwtAlgorithm::Rs384, "RSA, PKCS #1, SHA-384"),
    word("RS512", JwtAlgorithm::Rs512, "RSA, PKCS #1, SHA-512"),
    word("PS256", JwtAlgorithm::Ps256, "RSA, PSS, SHA-256"),
    word("PS384", JwtAlgorithm::Ps384, "RSA, PSS, SHA-384"),
    word("PS512", JwtAlgorithm::Ps512, "RSA, PSS, SHA-512"),
    word("ES256", JwtAlgorithm::Es256, "ECDSA on P-256"),
    word("ES384", JwtAlgorithm::Es384, "ECDSA on P-384"),
    word("EdDSA", JwtAlgorithm::EdDsa, "Ed25519"),
];

fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(text.as_bytes()).map_err(|error| error.to_string())
}

fn cookie(text: &str) -> Result<String, String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_token) {
        return Ok(text.to_owned());
    }
    Err("a cookie's name has letters, digits and some signs".to_owned())
}

/// A scope is sent back in a challenge. [RFC 6749 §3.3]
fn scope(text: &str) -> Result<String, String> {
    let is_plain = |byte: u8| matches!(byte, b'!'..=b'~') && !matches!(byte, b'"' | b'\\');
    if !text.is_empty() && text.bytes().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("a scope has no spaces, quotes and backslashes".to_owned())
}

settings! {
    /// Admits only requests with a valid JSON Web Token: signed by a key of `jwks-file`, `jwks-url`
    /// or `hmac-file`, from `issuer`, for `audience`, with `exp` in the future. All other requests
    /// are answered 401 with `WWW-Authenticate: Bearer`, reason `credentials_missing` or
    /// `credentials_invalid`; 403 without a required claim or scope, reason `token_claim_missing`.
    /// `{user}` in header fields is `sub`. Preflight requests of `cors` need none. Excludes
    /// `basic-auth`.
    JWT: Block, Unset = block("routes.route.policies.jwt")
        .optional("no token is needed")
        .also(&["routes.route"])
        .enforced(BY, "requests_with_a_valid_token_are_admitted");
    /// `iss` of the tokens, byte by byte.
    JWT_ISSUER: Text<String>, Required =
        words("routes.route.policies.jwt.issuer", "an issuer", "id.example.com")
            .enforced(BY, "requests_with_a_valid_token_are_admitted");
    /// `aud` of the tokens: one of these, or a list with one of them. At least one is needed: tokens for another
    /// service would be admitted.
    JWT_AUDIENCE: Text<String>, Repeatable =
        words("routes.route.policies.jwt.audience", "an audience", "api")
            .many()
            .enforced(BY, "requests_with_a_valid_token_are_admitted");
    /// A file with a JSON Web Key Set of public keys, read at start and at each reload.
    JWKS_FILE: Text<PathBuf>, Unset =
        file("routes.route.policies.jwt.jwks-file", "a key set", "keys.json")
            .optional("`jwks-url` or `hmac-file`")
            .enforced(BY, "a_reload_reads_the_file_of_keys_again");
    /// The URL of the issuer's key set, fetched from `jwks-upstream` concurrently with requests.
    /// Redirects are not followed.
    JWKS_URL: Text<KeySetUrl>, Unset = text(
        "routes.route.policies.jwt.jwks-url",
        "an http or https URL",
        "https://id.example.com/keys",
        str::parse::<KeySetUrl>,
    )
    .optional("`jwks-file` or `hmac-file`")
    .names(MachinePart::PeerAddress)
    .enforced(BY, "keys_are_fetched_and_fetched_again_for_an_unknown_one");
    /// The upstream of the issuer, which provides the addresses, TLS settings, names and health of
    /// its targets. With `https` in `jwks-url` it needs `tls`.
    JWKS_UPSTREAM: Text<String>, Unset =
        words("routes.route.policies.jwt.jwks-upstream", "an upstream's name", "other")
            .optional("only with `jwks-url`")
            .enforced(BY, "keys_are_fetched_and_fetched_again_for_an_unknown_one");
    /// Minimum time between two fetches, regardless of unknown keys in tokens and a shorter
    /// `max-age` of the response.
    JWKS_MIN_INTERVAL: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.jwt.jwks-min-interval-secs",
        Duration::from_secs(1),
        Duration::from_hours(1),
    )
    .or(Duration::from_secs(10))
    .enforced(BY, "keys_are_fetched_and_fetched_again_for_an_unknown_one");
    /// Longest time between two fetches; a shorter `max-age` of the answer counts.
    JWKS_MAX_INTERVAL: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.jwt.jwks-max-interval-secs",
        Duration::from_secs(1),
        Duration::from_hours(24),
    )
    .or(Duration::from_mins(5))
    .enforced(BY, "the_last_keys_are_used_while_the_issuer_is_unreachable_until_they_expire");
    /// Longest use of keys while the issuer does not answer. Then requests are answered 503, reason
    /// `token_keys_unavailable`.
    JWKS_MAX_AGE: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.jwt.jwks-max-age-secs",
        Duration::from_secs(1),
        Duration::from_hours(24 * 30),
    )
    .or(Duration::from_hours(24))
    .enforced(BY, "the_last_keys_are_used_while_the_issuer_is_unreachable_until_they_expire");
    /// A file with the secret of HMAC signatures: its bytes unchanged, without a trailing line feed at
    /// least 32 for `HS256`, 48 for `HS384`, 64 for `HS512`; other tokens are answered 401. Only `HS…`
    /// is accepted then. Refused in a bundle.
    HMAC_FILE: Text<PathBuf>, Unset =
        file("routes.route.policies.jwt.hmac-file", "a secret", "token.secret")
            .optional("`jwks-file` or `jwks-url`")
            .enforced(BY, "a_secret_verifies_hmac_and_no_public_key_does");
    /// Allowed algorithms. Without the setting: the algorithms of each key's type, restricted by
    /// its own `alg`. `none` is never accepted.
    JWT_ALGORITHMS: Choice<JwtAlgorithm>, Repeatable =
        choice("routes.route.policies.jwt.algorithms", ALGORITHMS)
            .many()
            .enforced(BY, "only_listed_algorithms_are_admitted");
    /// The field that has the token, with or without `Bearer`. Without the setting and without `cookie`:
    /// `Authorization`, with `Bearer`.
    JWT_HEADER: Text<HeaderName>, Unset =
        text("routes.route.policies.jwt.header", "a header name", "X-Token", header_name)
            .optional("`Authorization`")
            .enforced(BY, "a_token_is_taken_from_a_field_or_a_cookie");
    /// The cookie that has the token.
    JWT_COOKIE: Text<String>, Unset =
        text("routes.route.policies.jwt.cookie", "a cookie's name", "session", cookie)
            .optional("a header has it")
            .enforced(BY, "a_token_is_taken_from_a_field_or_a_cookie");
    /// Sends a claim to the upstream as a header field: texts, numbers and booleans, and
    /// comma-separated lists of them. The client's own fields of that name are removed, and of
    /// names that upstreams treat as equal (`x_user`). A claim name with dots that is not in the
    /// token is a path: `realm_access.roles`. A claim with a value that is invalid in a field, or with
    /// white space at its ends, is answered 403.
    JWT_CLAIM_HEADER: Pair, Repeatable = pair(
        "routes.route.policies.jwt.claim-header",
        "a header name and a claim",
        "\"X-User\" \"sub\"",
    )
    .many()
    .enforced(BY, "claims_replace_the_fields_of_the_client");
    /// A claim that the token must have: with this value, or a list with it. All of them are required.
    JWT_REQUIRE_CLAIM: Pair, Repeatable = pair(
        "routes.route.policies.jwt.require-claim",
        "a claim and its value",
        "\"role\" \"admin\"",
    )
    .many()
    .enforced(BY, "a_token_without_a_required_claim_is_answered_403");
    /// Scopes that the token must have in `scope` or `scp`, all of them.
    JWT_REQUIRE_SCOPE: Text<String>, Repeatable =
        text("routes.route.policies.jwt.require-scope", "a scope", "orders:read", scope)
            .many()
            .enforced(BY, "refusals_have_a_challenge_of_their_class");
    /// Largest difference between the clocks of issuer and proxy, for `exp` and `nbf`.
    JWT_CLOCK_SKEW: Time, DefaultValue<Duration> = time_from(
        "routes.route.policies.jwt.clock-skew-secs",
        Duration::ZERO,
        Duration::from_mins(10),
    )
    .or(Duration::from_mins(1))
    .enforced(BY, "clocks_may_differ_by_the_skew");
    /// Longest token. `limits { max-header-value-bytes }` is another bound.
    JWT_MAX_TOKEN: Size, DefaultValue<u64> =
        size("routes.route.policies.jwt.max-token-size", 256, 65_536)
            .or(8_192)
            .enforced(BY, "a_token_is_not_longer_than_allowed");
    /// Forwards the token to the upstream. Otherwise the field or the cookie is removed, for agents
    /// too.
    JWT_FORWARD: Flag, DefaultValue<bool> = flag("routes.route.policies.jwt.forward-token")
        .or(false)
        .enforced(BY, "the_token_is_forwarded_only_if_the_route_is_configured_to");
    /// The name in challenges.
    JWT_REALM: Text<String>, DefaultValue<Written<String>> = text(
        "routes.route.policies.jwt.realm",
        "printable ASCII",
        "Orders",
        realm,
    )
    .or(written("restricted", || "restricted".to_owned()))
    .enforced(BY, "refusals_have_a_challenge_of_their_class");
}
