//! Reasons to refuse a user that the identity provider confirmed.

use crate::access::Role;
use crate::sso::connection::SsoSettings;
use crate::text::Email;
use control_sso::{AssertedUser, Groups};
use jiff::{SignedDuration, Timestamp};

/// Maximum tolerated difference between the clocks of provider and control plane.
const MAX_SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Reason to refuse a user that the identity provider confirmed. Only the connection's
/// administrators see the reason; browsers get the same sentence for most of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SsoRefusal {
    /// The token refers to the groups by a link, because there are too many.
    #[error(
        "the provider sent a link in the place of groups, as Entra ID does for users of more than 150 or 200 groups: \
         let it send only groups that are assigned to this application"
    )]
    GroupsLink,
    /// No group is mapped to a role, and there is no `default`.
    #[error(
        "no group of the user is in the mapping, which has no `default`: such a user is not a member"
    )]
    NoRole,
    /// A new user has no verified address.
    #[error("the provider sent no address for a new user, or one that is not verified")]
    NoEmail,
    /// The address is in no domain for which the organization may create users.
    #[error("the new user's address is in no domain that the installation gave this organization")]
    ForeignDomain,
    /// Another user has the address.
    #[error(
        "a user with this address exists: the user signs in as before and links this identity at its profile"
    )]
    EmailTaken,
    /// The mapped role would leave the organization without an administrator.
    #[error("the mapped role would leave the organization without an administrator")]
    LastAdmin,
    /// The identity is linked to another user.
    #[error("the identity is linked to another user")]
    IdentityTaken,
    /// The browser did not begin this attempt, or is signed in as another user.
    #[error("the answer came by another browser or session than the one that began the sign-in")]
    OtherBrowser,
    /// An unsolicited response came to a browser with the session of another user.
    #[error(
        "an unsolicited response cannot replace another user's session: sign out first, or begin the sign-in here"
    )]
    OtherSession,
    /// The attempt was used before, or is older than ten minutes.
    #[error(
        "the answer belongs to no sign-in that was begun in the last ten minutes, or was used before"
    )]
    NoAttempt,
    /// The assertion was used before.
    #[error("the assertion was used before")]
    Replay,
    /// The provider confirmed an unknown user, or another than the signed-in one.
    #[error("the provider confirmed another user than the one that is signed in")]
    OtherUser,
    /// The provider did not authenticate the user again for this request.
    #[error(
        "the provider did not authenticate the user again, so its answer proves nothing: it must support `prompt=login` \
         and `max_age=0` and to send `auth_time` (OpenID Connect), or to obey `ForceAuthn` and to send `AuthnInstant` \
         (SAML); else an administrator creates a link for the user to set a password here"
    )]
    NotAuthenticated,
    /// An administrator removed the user from the organization.
    #[error(
        "an administrator removed the user from the organization: it is admitted again once one invites its address, \
         or lets it in at the list of removed members"
    )]
    Removed,
}

/// Checks that the provider authenticated the user for a request that began at `begun_at`.
///
/// # Errors
///
/// [`SsoRefusal::NotAuthenticated`] if the authentication was earlier, or its time is unknown.
pub fn check_authentication(user: &AssertedUser, begun_at: Timestamp) -> Result<(), SsoRefusal> {
    let is_new = user
        .authenticated_at
        .is_some_and(|at| begun_at <= at + MAX_SKEW);
    is_new.then_some(()).ok_or(SsoRefusal::NotAuthenticated)
}

/// The role that the user's groups map to.
///
/// # Errors
///
/// [`SsoRefusal::GroupsLink`] or [`SsoRefusal::NoRole`].
pub fn mapped_role(settings: &SsoSettings, user: &AssertedUser) -> Result<Role, SsoRefusal> {
    let groups = match &user.groups {
        Groups::Listed(groups) => groups.as_slice(),
        Groups::Absent => &[],
        Groups::Link => return Err(SsoRefusal::GroupsLink),
    };
    let role = settings.group_mapping().role(groups);
    role.ok_or(SsoRefusal::NoRole)
}

/// Address of a new user. It must be in one of the organization's `domains`; `None` permits every
/// domain, for the only organization of an installation.
///
/// # Errors
///
/// [`SsoRefusal::NoEmail`] or [`SsoRefusal::ForeignDomain`].
pub fn new_user_email(
    user: &AssertedUser,
    domains: Option<&[String]>,
) -> Result<Email, SsoRefusal> {
    let text = user.email.as_deref().ok_or(SsoRefusal::NoEmail)?;
    let email = Email::parse("email", text).map_err(|_| SsoRefusal::NoEmail)?;
    let (_, domain) = email.as_str().split_once('@').unwrap_or_default();
    let is_own = domains.is_none_or(|own| own.iter().any(|own| own == domain));
    is_own.then_some(email).ok_or(SsoRefusal::ForeignDomain)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(email: Option<&str>) -> AssertedUser {
        AssertedUser {
            issuer: "https://idp.test".to_owned(),
            subject: "1".to_owned(),
            email: email.map(str::to_owned),
            name: None,
            groups: Groups::Absent,
            session_ends_at: None,
            authenticated_at: None,
        }
    }

    #[test]
    fn a_proof_by_a_provider_is_of_an_authentication_since_the_request() {
        let begun_at = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        for (seconds, is_new) in [
            (Some(-61), false),
            (Some(-60), true),
            (Some(30), true),
            (None, false),
        ] {
            let user = AssertedUser {
                authenticated_at: seconds.map(|secs| begun_at + SignedDuration::from_secs(secs)),
                ..user(None)
            };
            let checked = check_authentication(&user, begun_at);
            assert_eq!(checked.is_ok(), is_new, "{seconds:?}");
        }
    }

    #[test]
    fn a_new_user_has_an_address_of_an_own_domain() {
        let own = ["example.test".to_owned()];
        let cases = [
            (
                Some("Ann@Example.test"),
                Some(&own[..]),
                Ok("ann@example.test"),
            ),
            (Some("ann@other.test"), None, Ok("ann@other.test")),
            (
                Some("ann@other.test"),
                Some(&own),
                Err(SsoRefusal::ForeignDomain),
            ),
            (
                Some("ann@sub.example.test"),
                Some(&own),
                Err(SsoRefusal::ForeignDomain),
            ),
            (
                Some("ann@example.test"),
                Some(&[]),
                Err(SsoRefusal::ForeignDomain),
            ),
            (
                Some("ann@example.test@other.test"),
                Some(&own),
                Err(SsoRefusal::NoEmail),
            ),
            (Some("ann"), None, Err(SsoRefusal::NoEmail)),
            (None, None, Err(SsoRefusal::NoEmail)),
        ];
        for (email, domains, expected) in cases {
            let found = new_user_email(&user(email), domains);
            let found = found.as_ref().map(Email::as_str).map_err(|error| *error);
            assert_eq!(found, expected, "{email:?}");
        }
    }
}
