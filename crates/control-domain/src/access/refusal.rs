//! Reasons to refuse a command.

pub(crate) mod faults;

use crate::access::{Role, ScopeRule};
use jiff::Timestamp;

/// Reason to refuse a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The value does not exist, or belongs to another tenant: the response must not tell the two
    /// apart.
    #[error("not found")]
    NotFound,
    /// The API key lacks the needed scope.
    #[error("{}", missing_scope(*.0))]
    MissingScope(ScopeRule),
    /// The API key is limited to a project, and the command concerns the organization.
    #[error("the API key is limited to a project")]
    LimitedToProject,
    /// The user's role for this tenant is too low.
    #[error("needs the role {0}")]
    LowerRole(Role),
    /// The session's last proof of identity is older than 10 minutes.
    #[error("needs the password or a code again: the last proof is older than 10 minutes")]
    NotFresh,
    /// The organization requires a second factor, and the session has none.
    #[error("the organization demands a second factor: set one up, or prove it again")]
    NoSecondFactor,
    /// The member has rights in another organization that the actor does not control.
    #[error(
        "the member belongs to other organizations, too: only the installation's administrator may do this"
    )]
    SharedMember,
    /// The account has no password, because its user signs in through a provider.
    #[error("the account has no password")]
    NoPassword,
    /// The user that created the API key no longer has the necessary role.
    #[error("the user that created the API key lacks the role {0}")]
    MakerRole(Role),
    /// The kind of credential is never accepted here.
    #[error("this kind of credential is not accepted here")]
    WrongCredential,
    /// An API key would create one with more rights than its own.
    #[error("an API key cannot create a key with more {0} than its own")]
    MoreThanOwn(&'static str),
    /// The credential has ended or was revoked.
    #[error("the credential is no longer valid")]
    Ended,
    /// The current state does not permit the event.
    #[error("{noun} that is {state} cannot {event}")]
    WrongState {
        /// Noun with its article.
        noun: &'static str,
        /// Current state of the value.
        state: &'static str,
        /// Event that the state does not permit.
        event: &'static str,
    },
    /// The person that requested approval cannot also approve, with whatever credential.
    #[error("another person must approve")]
    OwnApproval,
    /// Two persons are needed, but the creator of the API key is unknown.
    #[error("the user that created this API key is not known: create a new key")]
    UnknownPerson,
    /// The project's policy requires approval by a second person, and only rollouts can be
    /// approved.
    #[error("the project's policy requires another person's approval: create a rollout")]
    NeedsApproval,
    /// One of the two persons changed how the other one signs in, and may control both accounts.
    #[error(
        "another person must approve: one of the two changed how the other signs in within the last 7 days"
    )]
    DependentPerson,
    /// The project's policy requires approval by a second person, and the certificate is not a mere
    /// renewal, or its node labels change.
    #[error(
        "the project's policy permits only renewals: the same names and node labels, and no earlier expiry. Create a new \
         certificate, and name it in a bundle"
    )]
    CertificateExchange,
    /// The project's policy refuses bundles with warnings, and the warnings of this bundle were not
    /// counted.
    #[error(
        "the project's policy refuses bundles with warnings, and those of this one were not counted: create it again \
         from its files"
    )]
    UnknownWarnings,
    /// The project's policy refuses bundles with warnings, and this bundle has some.
    #[error("the project's policy refuses bundles with warnings, and this one has {0}")]
    Warnings(usize),
    /// The project's policy is in a freeze.
    #[error("the project's policy allows no change until {until}")]
    Frozen {
        /// End of the freeze.
        until: Timestamp,
    },
    /// An unfinished rollout holds one of the nodes.
    #[error("one of these nodes is in an active rollout")]
    Held,
    /// The organization would be left without an administrator.
    #[error("this is the only administrator")]
    LastAdmin,
    /// Other values still refer to this one.
    #[error("still has {0}")]
    InUse(&'static str),
    /// The value of this field is in use, and must be unique.
    #[error("{0} is taken")]
    Taken(&'static str),
    /// The quota is used up.
    #[error("Quota exceeded: {kind} - {owner} may have {limit}")]
    Quota {
        /// Kind of value.
        kind: &'static str,
        /// Kind of owner, such as `an organization`.
        owner: &'static str,
        /// Limit of the quota.
        limit: u64,
    },
    /// The organization has no active signing key.
    #[error("the organization has no active signing key")]
    NoSigningKey,
    /// The value of a field is invalid.
    #[error("{field}: {reason}")]
    Invalid {
        /// Name of the field, with dots between levels.
        field: &'static str,
        /// Reason why its value is invalid.
        reason: &'static str,
    },
    /// Values of several fields are invalid.
    #[error("{}", listed(.0))]
    InvalidFields(Vec<InvalidField>),
}

/// A field with an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// Name of the field, with dots between levels.
    pub field: &'static str,
    /// Reason why its value is invalid.
    pub reason: &'static str,
}

impl Refusal {
    /// Returns [`Refusal::Invalid`] for a field.
    pub const fn invalid(field: &'static str, reason: &'static str) -> Self {
        Self::Invalid { field, reason }
    }
}

fn listed(fields: &[InvalidField]) -> String {
    let fields = fields.iter();
    let fields = fields.map(|InvalidField { field, reason }| format!("{field}: {reason}"));
    fields.collect::<Vec<_>>().join("; ")
}

fn missing_scope(rule: ScopeRule) -> String {
    match rule {
        ScopeRule::Any => "the API key is not accepted".to_owned(),
        ScopeRule::Has(scope) => format!("the API key lacks the scope {scope}"),
        ScopeRule::Unlimited => "needs an API key without scopes".to_owned(),
    }
}
