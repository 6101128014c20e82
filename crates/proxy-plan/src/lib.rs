//! A compiled configuration and its decisions.
//!
//! A [`Plan`] is made once from a model and never changes. [`Plan::decide`] is the one decision
//! that the running proxy executes, that `explain` shows and that tests verify: a pure function of
//! the request's head, the [`UpstreamStates`] and the time.

mod access;
mod agent;
mod agent_state;
mod balancing;
mod balancing_request;
mod compile;
mod config_tests;
mod decide;
pub mod diff;
mod expansion;
pub mod explain;
mod listener;
mod plan;
mod registry;
pub mod render;
mod resolution;
mod retry;
mod route;
mod targets;
mod upstream;
mod upstream_states;

pub use access::AccessPlan;
pub use agent::{AgentEndpoint, AgentPlan, EventSet, RouteAgents};
pub use agent_state::{AgentEndpointAddress, AgentState};
pub use balancing::{BalancingPlan, StickyPlan};
pub use config_tests::certificates::{
    CertificateFailure, ServedCertificate, failed_certificate_tests,
};
pub use config_tests::drafts::draft_tests;
pub use config_tests::failed_tests;
pub use config_tests::live::{LiveTest, live_tests};
pub use config_tests::recorded_drafts::draft_recorded_tests;
pub use decide::{Choice, Decision, Outcome, RELAYED_METHOD, RequestHead};
pub use diff::PlanDiff;
pub use explain::{ExplainError, ExplainRequest, Explanation};
pub use listener::{AltSvcPlan, ListenerPlan};
pub use plan::Plan;
pub use registry::{StateRegistry, StateTransaction};
pub use resolution::{NameResolution, Resolution};
pub use retry::RetryPlan;
pub use route::{
    BasicAuthPlan, CachePlan, CompressionPlan, CorsPlan, CredentialsPlan, EditedFields,
    FixedResponsePlan, RateStage, RedirectPlan, Redirection, ResponseFields, RewritePlan,
    RoutePlan, RouteTimeouts, Service, ShadowPlan, TokenKeys, TokenPlan, rate_key_value,
};
pub use targets::{
    KeySetIdentity, KeySetPlan, KeySetTimes, TargetIdentity, TargetRegistry, TargetTransaction,
};
pub use upstream::{TargetPlan, UpstreamPlan};
pub use upstream_states::{AssumeHealthy, IdleBalancer, KnownHealth, UpstreamStates};
