//! Domain types of the control plane, with permissions and state machines.
//!
//! Operations are pure: they get the actor, the time and the loaded values, and return the values
//! to store, or a [`Refusal`]. Each one checks the permission first.

mod access;
mod labels;
mod machine;
mod named;
mod text;

mod account;
mod org;
mod project;
mod sso;

mod bundle;
mod definition;
mod node;
mod rollout;

mod states;

pub use access::actor::{Actor, NodeCredential};
pub use access::creator::Creator;
pub use access::refusal::{InvalidField, Refusal};
pub use access::{Access, Role, Scope, ScopeRule, Tenant};
pub use account::api_key::{API_KEY_TRANSITIONS, ApiKey, ApiKeyEvent, ApiKeyState, NewApiKey};
pub use account::identity::LinkedIdentity;
pub use account::invitation::Invitation;
pub use account::password_reset::PasswordReset;
pub use account::session::{Session, SessionOrigin, SignInMethod, UserRights, shortened_browser};
pub use account::setup_link::SetupLink;
pub use account::sign_in::{KnownBrowser, PendingSignIn};
pub use account::user::{NewUser, User};
pub use bundle::signing_key::{
    SIGNING_KEY_TRANSITIONS, SigningKey, SigningKeyEvent, SigningKeyState,
};
pub use bundle::{
    BUNDLE_TRANSITIONS, Bundle, BundleArchive, BundleEvent, BundleSignature, BundleState,
};
pub use definition::certificate::{Certificate, CertificateFacts, CertificateState};
pub use definition::managed_certificate::{
    CertificateKeyType, IssuanceError, IssuanceProgress, ManagedCertificate,
    ManagedCertificateSettings, ManagedCertificateState,
};
pub use definition::service::{Service, ServiceSettings};
pub use definition::upstream::{LoadBalancing, Target, Upstream, UpstreamSettings, UpstreamTls};
pub use labels::{LabelCondition, LabelSelector, Labels};
pub use machine::{Transition, next_state};
pub use node::drift::{
    DRIFT_GRACE, DRIFT_TRANSITIONS, Drift, DriftEvent, DriftResolution, DriftState,
};
pub use node::enrolment_token::{
    ENROLMENT_TOKEN_TRANSITIONS, EnrolmentToken, EnrolmentTokenEvent, EnrolmentTokenState,
    NewEnrolmentToken,
};
pub use node::heartbeat::received::{
    BundleAnswer, OrderedBundles, ReceivedReport, StoredReport, TrafficChange,
};
pub use node::heartbeat::{check_events, check_heartbeat};
pub use node::standing::NodeStanding;
pub use node::traffic::source::{CounterBasis, CounterSource};
pub use node::traffic::step::{TrafficPeriod, TrafficStep, TrafficWindow};
pub use node::traffic::{CountedRequests, REQUEST_COUNTS, RouteCounts, StepTraffic};
pub use node::{
    DUPLICATE_MEMORY, DuplicateNode, HeartbeatInterval, NODE_TRANSITIONS, NewNode, Node,
    NodeReport, NodeState, NodeTransitionEvent, OrderSummary,
};
pub use org::membership::Membership;
pub use org::{Org, OrgSecurity, QuotaKind, Quotas, Retention};
pub use project::Project;
pub use project::policy::{
    ApprovalRule, Freeze, Freezes, PolicyChange, PolicyRules, ProjectPolicy, WeakerRules,
};
pub use project::role::ProjectRole;
pub use project::webhook::{
    NewWebhook, Webhook, WebhookAttempt, WebhookDelivery, WebhookDeliveryState, WebhookEvent,
    WebhookSettings,
};
pub use rollout::figures::{BatchNode, Comparison, Figures, NodeBefore, NodeFigures};
pub use rollout::gate::{Gate, GateFailure, GateVerdict};
pub use rollout::reason::short_reason;
pub use rollout::route_names::RouteNames;
pub use rollout::served::{Served, p99_ms};
pub use rollout::weighing::{Trim, WeighedFigures};
pub use rollout::{
    Batch, BatchCounts, BatchSize, BatchState, MetricAnswer, MetricCondition, NewRollout,
    Observation, OnFailure, ROLLOUT_TRANSITIONS, Rejection, RevertCounts, RevertProgress, Rollout,
    RolloutChange, RolloutCommand, RolloutEvent, RolloutState, Strategy,
};
pub use sso::attempt::{
    SSO_ATTEMPT_LIFETIME, SSO_TICKET_LIFETIME, SsoAttemptContents, SsoPurpose, return_path,
};
pub use sso::connection::{
    OidcSettings, PrivateAddresses, SamlSettings, SsoConnection, SsoSettings,
};
pub use sso::group_mapping::GroupMapping;
pub use sso::refusal::{SsoRefusal, check_authentication, mapped_role, new_user_email};
pub use states::states_md;
pub use text::{Email, Name};
