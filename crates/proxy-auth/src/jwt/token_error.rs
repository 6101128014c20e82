//! Refusals of a token.

/// The rule that a token breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    /// Longer than allowed.
    #[error("the token is too long")]
    TooLong,
    /// Not three parts of base64url with JSON, or an algorithm without a signature.
    #[error("not a signed token")]
    Malformed,
    /// It has critical extensions.
    #[error("the token has critical extensions")]
    Critical,
    /// The algorithm is not allowed, or not one of the key.
    #[error("the algorithm is not allowed with this key")]
    Algorithm,
    /// The set has no key with the token's `kid`. A newer set may have it.
    #[error("the key is unknown")]
    UnknownKey,
    /// Several keys fit.
    #[error("several keys fit, and the token names none")]
    AmbiguousKey,
    /// The signature is not one of the key.
    #[error("the signature is wrong")]
    Signature,
    /// Another issuer.
    #[error("`iss` is another issuer")]
    Issuer,
    /// Another audience.
    #[error("`aud` has no audience of this route")]
    Audience,
    /// A time is missing or no number.
    #[error("`exp` is missing, or a time is not a number")]
    Time,
    /// Expired.
    #[error("the token has expired")]
    Expired,
    /// Not valid yet.
    #[error("the token is not valid yet")]
    NotYetValid,
}
