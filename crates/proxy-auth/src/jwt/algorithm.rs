//! Algorithms of signatures. [RFC 7518 §3.1, RFC 8037]

use jsonwebtoken::Algorithm;
use std::fmt;

/// Declares [`JwtAlgorithm`] with its names.
macro_rules! algorithms {
    ($($(#[doc = $doc:literal])+ $variant:ident $name:literal $theirs:ident;)+) => {
        /// An algorithm of signatures. It always belongs to a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum JwtAlgorithm {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl JwtAlgorithm {
            /// Every algorithm.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The name in `alg`.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)+
                }
            }

            pub(super) const fn theirs(self) -> Algorithm {
                match self {
                    $(Self::$variant => Algorithm::$theirs,)+
                }
            }
        }
    };
}

algorithms! {
    /// RSASSA-PKCS1-v1_5 with SHA-256.
    Rs256 "RS256" RS256;
    /// RSASSA-PKCS1-v1_5 with SHA-384.
    Rs384 "RS384" RS384;
    /// RSASSA-PKCS1-v1_5 with SHA-512.
    Rs512 "RS512" RS512;
    /// RSASSA-PSS with SHA-256.
    Ps256 "PS256" PS256;
    /// RSASSA-PSS with SHA-384.
    Ps384 "PS384" PS384;
    /// RSASSA-PSS with SHA-512.
    Ps512 "PS512" PS512;
    /// ECDSA on P-256 with SHA-256.
    Es256 "ES256" ES256;
    /// ECDSA on P-384 with SHA-384.
    Es384 "ES384" ES384;
    /// Ed25519.
    EdDsa "EdDSA" EdDSA;
    /// HMAC with SHA-256.
    Hs256 "HS256" HS256;
    /// HMAC with SHA-384.
    Hs384 "HS384" HS384;
    /// HMAC with SHA-512.
    Hs512 "HS512" HS512;
}

impl JwtAlgorithm {
    /// Returns true if signing and verifying take the same secret.
    #[must_use]
    pub const fn is_symmetric(self) -> bool {
        matches!(self, Self::Hs256 | Self::Hs384 | Self::Hs512)
    }

    /// Shortest secret of a symmetric algorithm, in bytes. [RFC 7518 §3.2]
    pub(super) const fn min_secret_bytes(self) -> usize {
        match self {
            Self::Hs384 => 48,
            Self::Hs512 => 64,
            Self::Rs256
            | Self::Rs384
            | Self::Rs512
            | Self::Ps256
            | Self::Ps384
            | Self::Ps512
            | Self::Es256
            | Self::Es384
            | Self::EdDsa
            | Self::Hs256 => 32,
        }
    }

    pub(super) fn from_theirs(theirs: Algorithm) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|own| own.theirs() == theirs)
    }
}

impl fmt::Display for JwtAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
