//! Errors of SAML messages.

/// Rule that a message violates. The message is for the log and the connection's administrators;
/// browsers get the same sentence for all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SamlError {
    /// A size limit is exceeded.
    #[error(
        "the message is larger than 512 KiB, nested deeper than 32 elements, or has more than 20 000 nodes or 16 \
         attributes in one element"
    )]
    TooLarge,
    /// The bytes are not XML, or use markup outside of the profile.
    #[error(
        "the message is not well-formed XML in UTF-8, or has a document type, a comment, a processing instruction or \
         a CDATA section"
    )]
    Xml,
    /// The form field is not Base64.
    #[error("the form field `SAMLResponse` is missing or not Base64")]
    Base64,
    /// The root element is another kind of message.
    #[error("the root element is not a SAML 2.0 `Response`")]
    NotAResponse,
    /// Two elements have the same ID.
    #[error("two elements have the same ID")]
    DuplicateId,
    /// There is no assertion, or more than one.
    #[error("the response does not have exactly one assertion, as a child of the response")]
    Assertions,
    /// An assertion, a name or an attribute is encrypted.
    #[error(
        "the assertion, or a part of it, is encrypted: switch assertion encryption off for this service at the \
         identity provider (Keycloak: Encrypt assertions; Entra ID: Token encryption; Okta: Assertion Encryption; \
         AD FS: EncryptClaims)"
    )]
    Encrypted,
    /// There is no signature.
    #[error(
        "neither the response nor the assertion is signed: switch signing on for this service at the identity provider"
    )]
    Unsigned,
    /// A signature is not a child of the response or its assertion.
    #[error("a signature is not a child of the response or of its assertion")]
    SignaturePlace,
    /// A signature has a form outside of the profile.
    #[error("the signature has another form than the profile allows: {0}")]
    SignatureForm(&'static str),
    /// A signature uses another algorithm, or a weak one.
    #[error(
        "the algorithm is not RSA or ECDSA with SHA-256 or better: switch SHA-1 off at the identity provider"
    )]
    Algorithm,
    /// The signed element was modified.
    #[error("the digest does not match: the signed element was changed")]
    Digest,
    /// The signature was made by another key.
    #[error(
        "none of the connection's certificates made this signature: the identity provider may have a new certificate"
    )]
    Signature,
    /// A certificate contains an unsupported or weak key.
    #[error(
        "the certificate is not in PEM or DER, or its key is not RSA of 2048 bits or more, P-256 or P-384"
    )]
    Certificate,
    /// The provider did not sign the user in.
    #[error("the identity provider did not sign the user in: its status is not `Success`")]
    Status,
    /// `Destination` does not match.
    #[error(
        "the response's `Destination` is not the assertion consumer service URL of this connection"
    )]
    Destination,
    /// `Issuer` does not match.
    #[error("the issuer is not the entity ID of this connection's identity provider")]
    Issuer,
    /// `Audience` does not match.
    #[error("the audience is not the service provider's entity ID of this connection")]
    Audience,
    /// The assertion is not valid yet (`NotBefore`).
    #[error("the assertion is not valid yet: compare the clocks")]
    Early,
    /// The assertion has expired (`NotOnOrAfter`).
    #[error("the assertion has expired: compare the clocks")]
    Expired,
    /// A condition is outside of the profile, and must not be ignored.
    #[error("the assertion has a condition or a time that is not understood")]
    Condition,
    /// There is no valid bearer confirmation.
    #[error(
        "no bearer confirmation names the assertion consumer service URL of this connection and an end"
    )]
    Confirmation,
    /// `InResponseTo` does not match.
    #[error("the response answers another request, or none: sign-in has to begin at this service")]
    InResponseTo,
    /// A required element is missing.
    #[error("the assertion lacks {0}")]
    Missing(&'static str),
    /// The metadata lacks a required part.
    #[error("the metadata lacks {0}")]
    Metadata(&'static str),
    /// The service's own signing key is unusable.
    #[error("the service's own signing key cannot be used")]
    OwnKey,
}
