//! The nouns, the permissions on them, and what follows.
//!
//! Every verb is pure: it takes the actor, the time and what was loaded, and gives what is to be
//! stored, or a [`Refusal`]. Its first line is the permission.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod access;
mod actor;
mod machine;
mod maker;
mod named;
mod refusal;
mod text;

mod api_key;
mod bundle;
mod certificate;
mod drift;
mod enrolment_token;
mod figures;
mod gate;
mod group_mapping;
mod heartbeat;
mod identity;
mod invitation;
mod labels;
mod membership;
mod node;
mod node_standing;
mod org;
mod password_reset;
mod policy;
mod project;
mod project_role;
mod rollout;
mod served;
mod service;
mod session;
mod setup_link;
mod sign_in;
mod signing_key;
mod sso_attempt;
mod sso_connection;
mod sso_refusal;
mod states;
mod upstream;
mod user;
mod weighing;

pub use access::{Access, Role, Scope, ScopeRule, Tenant};
pub use actor::{Actor, NodeCredential};
pub use api_key::{API_KEY_TRANSITIONS, ApiKey, ApiKeyEvent, ApiKeyState, NewApiKey};
pub use bundle::{
    BUNDLE_TRANSITIONS, Bundle, BundleArchive, BundleEvent, BundleSignature, BundleState,
};
pub use certificate::{Certificate, CertificateFacts, CertificateState};
pub use drift::{DRIFT_GRACE, DRIFT_TRANSITIONS, Drift, DriftEvent, DriftResolution, DriftState};
pub use enrolment_token::{
    ENROLMENT_TOKEN_TRANSITIONS, EnrolmentToken, EnrolmentTokenEvent, EnrolmentTokenState,
    NewEnrolmentToken,
};
pub use figures::{BatchNode, Comparison, Figures, NodeBefore, NodeFigures};
pub use gate::{Gate, GateFailure, GateVerdict};
pub use group_mapping::GroupMapping;
pub use heartbeat::{check_events, check_heartbeat};
pub use identity::LinkedIdentity;
pub use invitation::Invitation;
pub use labels::{LabelCondition, LabelSelector, Labels};
pub use machine::{Transition, next_state};
pub use maker::Maker;
pub use membership::Membership;
pub use node::{
    DUPLICATE_MEMORY, DuplicateNode, HeartbeatInterval, NODE_TRANSITIONS, NewNode, Node,
    NodeReport, NodeState, NodeTransitionEvent, OrderSummary,
};
pub use node_standing::NodeStanding;
pub use org::{Org, OrgSecurity, QuotaKind, Quotas, Retention};
pub use password_reset::PasswordReset;
pub use policy::{ApprovalRule, ProjectPolicy, WeakerRule};
pub use project::Project;
pub use project_role::ProjectRole;
pub use refusal::Refusal;
pub use rollout::{
    Batch, BatchCounts, BatchSize, BatchState, NewRollout, Observation, OnFailure,
    ROLLOUT_TRANSITIONS, Rejection, RevertCounts, RevertProgress, Rollout, RolloutChange,
    RolloutCommand, RolloutEvent, RolloutState, Strategy,
};
pub use served::{Served, p99_ms};
pub use service::{Service, ServiceSettings};
pub use session::{Session, SessionOrigin, SignInMethod, UserRights, shortened_browser};
pub use setup_link::SetupLink;
pub use sign_in::{KnownBrowser, PendingSignIn};
pub use signing_key::{SIGNING_KEY_TRANSITIONS, SigningKey, SigningKeyEvent, SigningKeyState};
pub use sso_attempt::{SSO_ATTEMPT_LIFETIME, SSO_TICKET_LIFETIME, SsoAttemptContents, return_path};
pub use sso_connection::{
    OidcSettings, PrivateAddresses, SamlSettings, SsoConnection, SsoSettings,
};
pub use sso_refusal::{SsoRefusal, mapped_role, new_user_email};
pub use states::states_md;
pub use text::{Email, Name};
pub use upstream::{LoadBalancing, Target, Upstream, UpstreamSettings, UpstreamTls};
pub use user::{NewUser, User};
pub use weighing::{Trim, Weighed};
