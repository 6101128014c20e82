//! Errors of sign-ins by OpenID Connect.

/// Rule that a response violates. The message is for the log and the connection's administrators;
/// browsers get the same sentence for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// A document is not JSON of the expected form.
    #[error("{0} is not JSON of the expected form")]
    Malformed(&'static str),
    /// The discovery document lacks a required member.
    #[error("the discovery document lacks {0}")]
    Discovery(&'static str),
    /// The discovery document belongs to another issuer.
    #[error("the discovery document names another issuer: it must equal that of the connection")]
    DiscoveryIssuer,
    /// The callback's `iss` is missing or names another issuer (RFC 9207).
    #[error("the callback's `iss` is missing or names another issuer (RFC 9207)")]
    CallbackIssuer,
    /// The callback matches no attempt of this browser.
    #[error("the callback's `state` belongs to no sign-in that this browser began")]
    State,
    /// The callback has neither a code nor an error, or a repeated parameter.
    #[error("the callback has no `code`")]
    NoCode,
    /// The provider refused with this OAuth error code.
    #[error("the provider answered `{0}`")]
    Refused(&'static str),
    /// The token is encrypted.
    #[error(
        "the ID token is encrypted: switch ID token encryption off for this client at the provider"
    )]
    Encrypted,
    /// The token is not a signed JWT.
    #[error("the ID token is not a signed JWT")]
    Token,
    /// The token has critical header parameters (RFC 7515, section 4.1.11).
    #[error("the ID token has critical header fields (`crit`)")]
    Critical,
    /// No key of the key set matches the token's key ID, type and use.
    #[error("no key of the provider's key set fits the ID token")]
    UnknownKey,
    /// The signature does not verify.
    #[error("the ID token's signature does not match the provider's key")]
    Signature,
    /// A claim is missing or invalid.
    #[error("the ID token's `{0}` is missing or wrong")]
    Claim(&'static str),
    /// The token has expired (`exp`).
    #[error("the ID token has expired: compare the clocks")]
    Expired,
    /// The token is not valid yet (`iat`, `nbf`).
    #[error("the ID token is not valid yet: compare the clocks")]
    Early,
    /// The user info belongs to another user (OpenID Connect Core, section 5.3.2).
    #[error("the user info has another `sub` than the ID token")]
    UserInfoSubject,
}
