//! Sessions: credentials of browsers.

use crate::access::actor::{Actor, higher_role};
use crate::access::refusal::Refusal;
use crate::access::{Role, Tenant};
use crate::account::user::User;
use crate::named::named;
use control_wire::{OrgId, ProjectId, SessionId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

/// Idle timeout: time from the last request to the end of the session.
const IDLE_TIMEOUT: SignedDuration = SignedDuration::from_hours(12);
/// Maximum lifetime of a session.
const MAX_LIFETIME: SignedDuration = SignedDuration::from_hours(7 * 24);
/// Time for which a proof of identity is fresh.
const IDENTITY_PROOF_LIFETIME: SignedDuration = SignedDuration::from_mins(10);
/// Minimum time between two updates of the last request's time: saves a write per request.
const SEEN_PRECISION: SignedDuration = SignedDuration::from_mins(5);

named! {
    /// Proof of the user's identity.
    #[schema(as = SignInMethodName)]
    SignInMethod {
        /// Password, without a second factor.
        Password = "password",
        /// The password and a code of an authenticator app.
        PasswordTotp = "password+totp",
        /// The password and a recovery code.
        PasswordRecovery = "password+recovery_code",
        /// An identity provider with `OpenID Connect`.
        Oidc = "oidc",
        /// An identity provider with SAML.
        Saml = "saml",
        /// `OpenID Connect`, and a code of an authenticator app in the same session.
        OidcTotp = "oidc+totp",
        /// SAML, and a code of an authenticator app in the same session.
        SamlTotp = "saml+totp",
    }
}

/// How, where and by which browser a session was started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOrigin {
    /// Proof of the user's identity.
    pub method: SignInMethod,
    /// Organization of the identity provider that confirmed the user; `None` without a provider.
    pub provider: Option<OrgId>,
    /// IP address of the browser.
    pub address: Option<IpAddr>,
    /// The browser's name, shortened; empty if unknown.
    pub browser: String,
}

/// A session, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// UUID of version 7, not the secret of the cookie.
    pub id: SessionId,
    /// User that signed in.
    pub user: UserId,
    /// Method and place of the sign-in.
    pub origin: SessionOrigin,
    /// Time of its start.
    pub created_at: Timestamp,
    /// Time of the last request, at most 5 minutes out of date. Requests that only keep a page live
    /// do not count.
    pub seen_at: Timestamp,
    /// End of the time for which the last proof of identity is fresh.
    pub strong_until: Timestamp,
    /// End of the session, however much it is used.
    pub ends_at: Timestamp,
    /// Time of revocation.
    pub revoked_at: Option<Timestamp>,
}

/// Rights of a user at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserRights {
    /// The user's role in each of its organizations.
    pub roles: BTreeMap<OrgId, Role>,
    /// The user's roles in single projects.
    pub project_roles: BTreeMap<ProjectId, Role>,
    /// Organizations that require a second factor.
    pub guarded: BTreeSet<OrgId>,
}

impl UserRights {
    /// Role in the tenant: the higher one of organization and project; `None` for non-members.
    pub fn role(&self, tenant: Tenant) -> Option<Role> {
        higher_role(&self.roles, &self.project_roles, tenant)
    }
}

impl SignInMethod {
    /// Returns true if the control plane itself verified two factors.
    pub fn has_second_factor(self) -> bool {
        match self {
            Self::PasswordTotp | Self::PasswordRecovery | Self::OidcTotp | Self::SamlTotp => true,
            Self::Password | Self::Oidc | Self::Saml => false,
        }
    }

    /// Returns true if only an identity provider confirmed the user, and the control plane verified
    /// no factor.
    pub fn is_vouched_only(self) -> bool {
        matches!(self, Self::Oidc | Self::Saml)
    }

    /// Adds a proof by the password, which outranks a provider's confirmation.
    #[must_use]
    pub fn with_password(self) -> Self {
        if self.is_vouched_only() {
            return Self::Password;
        }
        self
    }

    /// Adds a proof by a code of an authenticator app.
    #[must_use]
    pub fn with_totp(self) -> Self {
        match self {
            Self::Password | Self::PasswordTotp | Self::PasswordRecovery => Self::PasswordTotp,
            Self::Oidc | Self::OidcTotp => Self::OidcTotp,
            Self::Saml | Self::SamlTotp => Self::SamlTotp,
        }
    }
}

impl Default for SessionOrigin {
    fn default() -> Self {
        Self {
            method: SignInMethod::Password,
            provider: None,
            address: None,
            browser: String::new(),
        }
    }
}

impl Session {
    /// Starts a session with a fresh proof of identity.
    pub fn start(id: SessionId, user: UserId, origin: SessionOrigin, now: Timestamp) -> Self {
        Self {
            id,
            user,
            origin,
            created_at: now,
            seen_at: now,
            strong_until: now + IDENTITY_PROOF_LIFETIME,
            ends_at: now + MAX_LIFETIME,
            revoked_at: None,
        }
    }

    /// Adjusts the session to the time `at` at which the identity provider authenticated the user;
    /// `None` if the provider does not say. An old authentication is no fresh proof.
    #[must_use]
    pub fn authenticated(self, at: Option<Timestamp>) -> Self {
        let strong_until = match at {
            Some(at) => at.min(self.created_at) + IDENTITY_PROOF_LIFETIME,
            None => self.created_at,
        };
        Self {
            strong_until,
            ..self
        }
    }

    /// Renews the proof of identity; `method` combines the new proof with earlier ones.
    #[must_use]
    pub fn strengthen(self, method: SignInMethod, now: Timestamp) -> Self {
        let origin = SessionOrigin {
            method,
            ..self.origin
        };
        Self {
            origin,
            strong_until: now + IDENTITY_PROOF_LIFETIME,
            ..self
        }
    }

    /// The actor that the session authenticates. Organizations choose their providers, which could
    /// therefore claim any user: until the user adds a proof of its own, a session from a provider
    /// is valid in the provider's organization only.
    ///
    /// # Errors
    ///
    /// [`Refusal::Ended`] if the session was revoked or has expired.
    pub fn accept(
        &self,
        user: &User,
        rights: UserRights,
        now: Timestamp,
    ) -> Result<Actor, Refusal> {
        if !self.is_open(now) || user.id != self.user {
            return Err(Refusal::Ended);
        }
        let UserRights {
            mut roles,
            project_roles,
            guarded,
        } = rights;
        let lacks = |org: &OrgId| !self.satisfies(*org);
        let everywhere = (roles.len(), user.instance_admin);
        let is_confined = self.origin.method.is_vouched_only();
        if is_confined {
            roles.retain(|org, _| self.origin.provider == Some(*org));
        }
        let instance_admin = user.instance_admin && !is_confined;
        Ok(Actor::User {
            id: self.user,
            session: self.id,
            instance_admin,
            owns_account: (roles.len(), instance_admin) == everywhere,
            roles,
            project_roles,
            locked: guarded.into_iter().filter(lacks).collect(),
            is_fresh: now < self.strong_until,
        })
    }

    /// Returns true if the session is neither revoked nor expired.
    pub fn is_open(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && now < self.expires_at()
    }

    /// Sessions with their last request at or before this time have expired at `now`.
    pub fn idle_before(now: Timestamp) -> Timestamp {
        now - IDLE_TIMEOUT
    }

    /// Time of expiry if no further request is made.
    pub fn expires_at(&self) -> Timestamp {
        (self.seen_at + IDLE_TIMEOUT).min(self.ends_at)
    }

    /// Returns true if only the identity provider of `org` confirmed the user.
    pub fn is_vouched_by(&self, org: OrgId) -> bool {
        self.origin.method.is_vouched_only() && self.origin.provider == Some(org)
    }

    /// Returns true if the time of the last request must be stored again.
    pub fn is_seen_late(&self, now: Timestamp) -> bool {
        SEEN_PRECISION <= now.duration_since(self.seen_at)
    }

    /// Returns true if the session meets the second-factor requirement of `org`. A provider's
    /// confirmation counts only for the provider's own organization.
    fn satisfies(&self, org: OrgId) -> bool {
        let SessionOrigin {
            method, provider, ..
        } = self.origin;
        method.has_second_factor() || provider == Some(org)
    }
}

/// A short name of the browser from its `User-Agent`, such as `Firefox 128, Linux`: at most 40
/// visible characters.
pub fn shortened_browser(user_agent: &str) -> String {
    const BROWSERS: [(&str, &str); 6] = [
        ("Edg/", "Edge"),
        ("OPR/", "Opera"),
        ("Firefox/", "Firefox"),
        ("Chrome/", "Chrome"),
        ("Version/", "Safari"),
        ("curl/", "curl"),
    ];
    // User agents on Android contain `Linux`, those on iPhones `Mac OS X`.
    const SYSTEMS: [(&str, &str); 6] = [
        ("Android", "Android"),
        ("iPhone", "iPhone"),
        ("iPad", "iPad"),
        ("Windows", "Windows"),
        ("Mac OS X", "macOS"),
        ("Linux", "Linux"),
    ];
    const MAX_CHARS: usize = 40;
    let browser = BROWSERS.iter().find_map(|(mark, name)| {
        let (_, rest) = user_agent.split_once(mark)?;
        let digits: String = rest
            .chars()
            .take_while(char::is_ascii_digit)
            .take(5)
            .collect();
        Some(format!("{name} {digits}"))
    });
    let system = SYSTEMS.iter().find(|(mark, _)| user_agent.contains(mark));
    match (browser, system) {
        (Some(browser), Some((_, system))) => format!("{browser}, {system}"),
        (Some(browser), None) => browser,
        (None, _) => {
            let visible = user_agent.chars().filter(|c| matches!(c, ' '..='~'));
            visible.take(MAX_CHARS).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::Access;
    use crate::text::{Email, Name};
    use uuid::Uuid;

    const ORG: OrgId = OrgId(Uuid::from_u128(3));
    const START: Timestamp = Timestamp::UNIX_EPOCH;

    fn user() -> User {
        User {
            id: UserId(Uuid::from_u128(1)),
            email: Email::stored("a@b".to_owned()),
            name: Name::stored("A".to_owned()),
            password: None,
            instance_admin: false,
            created_at: START,
        }
    }

    fn session(method: SignInMethod, provider: Option<OrgId>) -> Session {
        let origin = SessionOrigin {
            method,
            provider,
            ..SessionOrigin::default()
        };
        Session::start(SessionId(Uuid::from_u128(2)), user().id, origin, START)
    }

    #[test]
    fn a_session_ends_when_idle_when_old_and_when_revoked() {
        let session = session(SignInMethod::Password, None);
        let accepted = |session: &Session, hours| {
            let now = START + SignedDuration::from_hours(hours);
            session.accept(&user(), UserRights::default(), now).is_ok()
        };
        assert!(accepted(&session, 11));
        assert!(!accepted(&session, 12));
        let busy = Session {
            seen_at: START + SignedDuration::from_hours(167),
            ..session.clone()
        };
        assert!(accepted(&busy, 167));
        assert!(!accepted(&busy, 168));
        let shortened = Session {
            ends_at: START + SignedDuration::from_hours(2),
            ..session.clone()
        };
        assert!(accepted(&shortened, 1));
        assert!(!accepted(&shortened, 2));
        let revoked = Session {
            revoked_at: Some(START),
            ..session
        };
        assert!(!accepted(&revoked, 1));
    }

    #[test]
    fn a_proof_is_fresh_for_ten_minutes() {
        let session = session(SignInMethod::Password, None);
        let fresh = |session: &Session, minutes| {
            let now = START + SignedDuration::from_mins(minutes);
            let rights = UserRights {
                roles: BTreeMap::from([(ORG, Role::Admin)]),
                ..UserRights::default()
            };
            let actor = session.accept(&user(), rights, now).unwrap();
            assert_eq!(actor.holds(Access::Session), Ok(()));
            assert_eq!(actor.require(Access::ADMINISTER, Tenant::org(ORG)), Ok(()));
            let own = actor.holds(Access::FreshSession);
            assert_eq!(actor.require(Access::CONTROL, Tenant::org(ORG)), own);
            own
        };
        assert_eq!(fresh(&session, 9), Ok(()));
        assert_eq!(fresh(&session, 10), Err(Refusal::NotFresh));
        let later = START + SignedDuration::from_mins(30);
        let again = session.strengthen(SignInMethod::Password, later);
        assert_eq!(fresh(&again, 39), Ok(()));
        assert_eq!(fresh(&again, 40), Err(Refusal::NotFresh));
    }

    #[test]
    fn a_session_of_a_provider_is_as_fresh_as_the_authentication_there() {
        let now = START + SignedDuration::from_hours(1);
        for (minutes, is_fresh) in [
            (Some(0), true),
            (Some(-9), true),
            (Some(-10), false),
            (Some(90), true),
            (None, false),
        ] {
            let at = minutes.map(|minutes| now + SignedDuration::from_mins(minutes));
            let origin = SessionOrigin {
                method: SignInMethod::Oidc,
                provider: Some(ORG),
                ..SessionOrigin::default()
            };
            let id = SessionId(Uuid::from_u128(2));
            let session = Session::start(id, user().id, origin, now).authenticated(at);
            assert!(
                session.strong_until <= now + IDENTITY_PROOF_LIFETIME,
                "{minutes:?}"
            );
            let actor = session.accept(&user(), UserRights::default(), now).unwrap();
            assert_eq!(
                actor.holds(Access::FreshSession).is_ok(),
                is_fresh,
                "{minutes:?}"
            );
        }
    }

    #[test]
    fn an_organization_that_demands_a_second_factor_admits_no_session_without() {
        let other = OrgId(Uuid::from_u128(4));
        for (method, provider, admitted) in [
            (SignInMethod::Password, None, false),
            (SignInMethod::PasswordTotp, None, true),
            (SignInMethod::PasswordRecovery, None, true),
            (SignInMethod::Oidc, Some(ORG), true),
            (SignInMethod::Saml, Some(other), false),
            // A session of the provider, in which the password was proven.
            (SignInMethod::Password, Some(ORG), true),
            (SignInMethod::Password, Some(other), false),
        ] {
            let rights = UserRights {
                roles: BTreeMap::from([(ORG, Role::Reader), (other, Role::Reader)]),
                guarded: BTreeSet::from([ORG]),
                ..UserRights::default()
            };
            let actor = session(method, provider).accept(&user(), rights, START);
            let actor = actor.unwrap();
            let found = actor.require(Access::READ_ORG, Tenant::org(ORG));
            assert_eq!(found.is_ok(), admitted, "{method}");
        }
    }

    #[test]
    fn a_session_of_a_provider_acts_in_its_organization_until_the_user_gives_a_proof() {
        let other = OrgId(Uuid::from_u128(4));
        let root = User {
            instance_admin: true,
            ..user()
        };
        let rights = |orgs: &[OrgId]| UserRights {
            roles: orgs.iter().map(|org| (*org, Role::Admin)).collect(),
            ..UserRights::default()
        };
        let started = session(SignInMethod::Oidc, Some(ORG));
        for (user, orgs, owns) in [
            (&user(), &[ORG][..], true),
            (&user(), &[ORG, other], false),
            (&root, &[ORG], false),
        ] {
            let actor = started.accept(user, rights(orgs), START).unwrap();
            assert_eq!(actor.require(Access::CONTROL, Tenant::org(ORG)), Ok(()));
            let elsewhere = actor.require(Access::READ_ORG, Tenant::org(other));
            assert_eq!(elsewhere, Err(Refusal::NotFound));
            assert!(actor.holds(Access::InstanceAdmin).is_err());
            assert_eq!(actor.holds(Access::FreshSession).is_ok(), owns, "{orgs:?}");
        }
        let (password, code) = (
            SignInMethod::Oidc.with_password(),
            SignInMethod::Saml.with_totp(),
        );
        for method in [password, code] {
            let proven = started.clone().strengthen(method, START);
            let actor = proven.accept(&root, rights(&[ORG, other]), START).unwrap();
            assert_eq!(actor.require(Access::CONTROL, Tenant::org(other)), Ok(()));
            assert_eq!(actor.holds(Access::InstanceAdmin), Ok(()));
            assert_eq!(actor.holds(Access::FreshSession), Ok(()));
        }
    }

    #[test]
    fn a_browser_has_a_short_name() {
        for (full, short) in [
            (
                "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0",
                "Firefox 128, Linux",
            ),
            (
                "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                 Chrome/120.0.0.0 Safari/537.36 Edg/120.0.1",
                "Edge 120, Windows",
            ),
            (
                "Mozilla/5.0 (iPhone; CPU iPhone OS 17_5 like Mac OS X) AppleWebKit/605.1.15 \
                 (KHTML, like Gecko) Version/17.5 Mobile/15E148 Safari/604.1",
                "Safari 17, iPhone",
            ),
            ("curl/8.5.0", "curl 8"),
            ("a\u{202e}b\n<script>", "ab<script>"),
            ("", ""),
        ] {
            assert_eq!(shortened_browser(full), short);
        }
        assert_eq!(shortened_browser(&"x".repeat(1000)).len(), 40);
    }
}
