//! Reasons to refuse a sign-in by OpenID Connect.

/// The rule that an answer breaks. The message is for the log and for the connection's administrator; browsers get
/// one sentence for all rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// An answer that is not the expected JSON.
    #[error("{0} is not JSON of the expected form")]
    Malformed(&'static str),
    /// Discovery without a required value.
    #[error("the discovery document lacks {0}")]
    Discovery(&'static str),
    /// The discovery document is of another issuer.
    #[error("the discovery document names another issuer: it must equal that of the connection")]
    DiscoveryIssuer,
    /// RFC 9207: the issuer is another provider, or missing.
    #[error("the callback's `iss` is missing or names another issuer (RFC 9207)")]
    CallbackIssuer,
    /// The callback belongs to no attempt of this browser.
    #[error("the callback's `state` belongs to no sign-in that this browser began")]
    State,
    /// The callback has neither a code nor an error, or several.
    #[error("the callback has no `code`")]
    NoCode,
    /// The provider answers the code with this OAuth error.
    #[error("the provider answered `{0}`")]
    Refused(&'static str),
    /// An encrypted token.
    #[error(
        "the ID token is encrypted: switch ID token encryption off for this client at the provider"
    )]
    Encrypted,
    /// Not a token.
    #[error("the ID token is not a signed JWT")]
    Token,
    /// RFC 7515, section 4.1.11
    #[error("the ID token has critical header fields (`crit`)")]
    Critical,
    /// No key of the set has the token's key ID, kind and use.
    #[error("no key of the provider's key set fits the ID token")]
    UnknownKey,
    /// The signature does not match.
    #[error("the ID token's signature does not match the provider's key")]
    Signature,
    /// A claim that breaks its rule.
    #[error("the ID token's `{0}` is missing or wrong")]
    Claim(&'static str),
    /// `exp`
    #[error("the ID token has expired: compare the clocks")]
    Expired,
    /// `iat`, `nbf`
    #[error("the ID token is not valid yet: compare the clocks")]
    Early,
    /// OpenID Connect Core, section 5.3.2
    #[error("the user info has another `sub` than the ID token")]
    UserInfoSubject,
}
