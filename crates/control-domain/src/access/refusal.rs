//! Reason to refuse a command.

pub(crate) mod faults;

use crate::access::{Role, ScopeRule};
use jiff::Timestamp;

/// Reason to refuse a command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The value does not exist or belongs to another tenant; the two must be indistinguishable.
    #[error("not found")]
    NotFound,
    /// The API key lacks the needed scope.
    #[error("{}", missing_scope(*.0))]
    MissingScope(ScopeRule),
    /// The API key is limited to a project, and this concerns the organization.
    #[error("the API key is limited to a project")]
    LimitedToProject,
    /// The user's role in this organization is lower.
    #[error("needs the role {0}")]
    LowerRole(Role),
    /// The last proof of the user's identity in this session is older than 10 minutes.
    #[error("needs the password or a code again: the last proof is older than 10 minutes")]
    NotFresh,
    /// The organization requires a second factor, and the session has none.
    #[error("the organization demands a second factor: set one up, or prove it again")]
    NoSecondFactor,
    /// The member has rights elsewhere that the actor does not control.
    #[error(
        "the member belongs to other organizations, too: only the installation's administrator may do this"
    )]
    SharedMember,
    /// The account has no password: its user signs in by a provider.
    #[error("the account has no password")]
    NoPassword,
    /// The role of the user that made the API key is lower by now.
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
    /// The state machine has no row for this.
    #[error("{noun} that is {state} cannot {event}")]
    WrongState {
        /// The noun with its article.
        noun: &'static str,
        /// State that the item has.
        state: &'static str,
        /// Event that this state does not accept.
        event: &'static str,
    },
    /// The person that requested approval cannot give it, with any credential.
    #[error("another person must approve")]
    OwnApproval,
    /// Two persons are needed, and the creator of the API key was not recorded.
    #[error("the user that created this API key is not known: create a new key")]
    UnknownPerson,
    /// The project's policy requires approval by a second person, and only rollouts can be
    /// approved.
    #[error("the project's policy requires another person's approval: create a rollout")]
    NeedsApproval,
    /// One of the two persons changed how the other one signs in, and could be both.
    #[error(
        "another person must approve: one of the two changed how the other signs in within the last 7 days"
    )]
    DependentPerson,
    /// The project's policy requires approval by a second person, and the certificate is not a renewal of the one
    /// before, or has other labels of its nodes.
    #[error(
        "the project's policy requires another person's approval of a certificate that is not a renewal, for the same \
         names, with the same node labels and as long: make a new certificate, and name it in a bundle"
    )]
    CertificateExchange,
    /// The project's policy refuses bundles with warnings, and those of this one were not counted.
    #[error(
        "the project's policy refuses bundles with warnings, and those of this one were not counted: make it again \
         from its files"
    )]
    UnknownWarnings,
    /// The project's policy refuses bundles with warnings, and this one has so many.
    #[error("the project's policy refuses bundles with warnings, and this one has {0}")]
    Warnings(usize),
    /// The project's policy allows no change at this time.
    #[error("the project's policy allows no change until {until}")]
    Frozen {
        /// The end of the freeze.
        until: Timestamp,
    },
    /// A rollout moves the node, and has not ended.
    #[error("a rollout that has not ended moves a node of these")]
    Held,
    /// The organization would be left without an administrator.
    #[error("the last administrator stays")]
    LastAdmin,
    /// Other values still refer to this one.
    #[error("still has {0}")]
    InUse(&'static str),
    /// Another value has this field's value, which must be unique.
    #[error("{0} is taken")]
    Taken(&'static str),
    /// The owner's quota is used up.
    #[error("Quota exceeded: {kind} - {owner} may have {limit}")]
    Quota {
        /// The kind of value.
        kind: &'static str,
        /// The kind of owner, such as `an organization`.
        owner: &'static str,
        /// Maximum number of items of the kind.
        limit: u64,
    },
    /// The organization has no active signing key.
    #[error("the organization has no active signing key")]
    NoSigningKey,
    /// A field has a wrong value.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field's name, with dots between levels.
        field: &'static str,
        /// Reason to refuse its value.
        reason: &'static str,
    },
    /// Several fields have wrong values.
    #[error("{}", listed(.0))]
    InvalidFields(Vec<InvalidField>),
}

/// A field with a wrong value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidField {
    /// The field's name, with dots between levels.
    pub field: &'static str,
    /// Reason to refuse its value.
    pub reason: &'static str,
}

impl Refusal {
    /// [`Refusal::Invalid`]
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
