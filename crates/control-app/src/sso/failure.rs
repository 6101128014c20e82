//! Errors of sign-ins through an identity provider.

use crate::app::outbound::OutboundError;
use crate::error::Error;
use control_domain::{Refusal, SsoRefusal};
use control_sso::oidc::OidcError;
use control_sso::saml::SamlError;
use control_store::StoreError;

/// Error of a sign-in through an identity provider. Browsers show the same sentence for most of
/// them, so that they reveal nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SsoFailure {
    /// An OpenID Connect response breaks a rule.
    #[error(transparent)]
    Oidc(#[from] OidcError),
    /// A SAML message breaks a rule.
    #[error(transparent)]
    Saml(#[from] SamlError),
    /// The provider cannot be reached.
    #[error("{document}: {reason}")]
    Outbound {
        document: &'static str,
        reason: OutboundError,
    },
    /// The provider confirmed the user, but admission is refused.
    #[error(transparent)]
    Refused(#[from] SsoRefusal),
    /// Fault of the control plane.
    #[error(transparent)]
    Internal(Error),
}

impl SsoFailure {
    /// Returns true for a database conflict, which a concurrent admission may cause: another
    /// attempt may succeed.
    pub(crate) fn is_conflict(&self) -> bool {
        match self {
            Self::Refused(SsoRefusal::EmailTaken | SsoRefusal::IdentityTaken)
            | Self::Internal(Error::Store(StoreError::Conflict | StoreError::Stale)) => true,
            Self::Oidc(_)
            | Self::Saml(_)
            | Self::Outbound { .. }
            | Self::Refused(_)
            | Self::Internal(_) => false,
        }
    }
}

impl From<Error> for SsoFailure {
    fn from(error: Error) -> Self {
        Self::Internal(error)
    }
}

impl From<StoreError> for SsoFailure {
    fn from(error: StoreError) -> Self {
        Self::Internal(error.into())
    }
}

impl From<Refusal> for SsoFailure {
    fn from(refusal: Refusal) -> Self {
        if refusal == Refusal::LastAdmin {
            return Self::Refused(SsoRefusal::LastAdmin);
        }
        Self::Internal(refusal.into())
    }
}
