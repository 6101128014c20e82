//! Sign-ins in progress through identity providers.

use control_wire::UserId;
use jiff::SignedDuration;
use serde::{Deserialize, Serialize};

/// Time limit for the provider's response.
pub const SSO_ATTEMPT_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// Time limit for the browser to present its ticket after the SAML response was verified.
pub const SSO_TICKET_LIFETIME: SignedDuration = SignedDuration::from_secs(60);

const MAX_PATH_BYTES: usize = 500;

/// Purpose of a sign-in at an identity provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SsoPurpose {
    /// Start a session.
    SignIn,
    /// Link a further identity to the user.
    Link(UserId),
    /// Renew the proof of identity of the user's session.
    Proof(UserId),
    /// Test the connection, by an administrator: the response is verified and recorded, without
    /// other effects.
    Trial(UserId),
}

/// Values that the response to an attempt must match.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SsoAttemptContents {
    /// OpenID Connect.
    Oidc {
        /// Value of `nonce` in the ID token.
        nonce: String,
        /// The PKCE code verifier.
        verifier: String,
    },
    /// SAML.
    Saml {
        /// ID of the request, for `InResponseTo`.
        request_id: String,
    },
}

impl SsoPurpose {
    /// The signed-in user that began the attempt; `None` for a sign-in.
    pub fn user(self) -> Option<UserId> {
        match self {
            Self::SignIn => None,
            Self::Link(user) | Self::Proof(user) | Self::Trial(user) => Some(user),
        }
    }

    /// Returns true for a proof of identity.
    pub fn is_proof(self) -> bool {
        matches!(self, Self::Proof(_))
    }

    /// Returns true for a trial of the connection.
    pub fn is_trial(self) -> bool {
        matches!(self, Self::Trial(_))
    }
}

/// Path to redirect the browser to: `text` if it is a path on this server, otherwise `/`.
pub fn return_path(text: &str) -> &str {
    let is_path = text.starts_with('/') && !text.starts_with("//") && !text.starts_with("/\\");
    let is_plain = text.bytes().all(|byte| (0x21..=0x7e).contains(&byte));
    if is_path && is_plain && text.len() <= MAX_PATH_BYTES {
        return text;
    }
    "/"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_path_of_this_server_is_a_return_path() {
        for good in ["/", "/projects/1?q=a:b", "/a//b"] {
            assert_eq!(return_path(good), good);
        }
        let long = format!("/{}", "a".repeat(MAX_PATH_BYTES));
        for bad in [
            "",
            "//evil.test",
            "/\\evil.test",
            "https://evil.test",
            "/a\r\nb",
            "/ä",
            &long,
        ] {
            assert_eq!(return_path(bad), "/", "{bad}");
        }
    }
}
