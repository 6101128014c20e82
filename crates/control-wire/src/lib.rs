//! Messages between nodes, clients and the control plane.

mod certificate;
mod challenge;
mod error;
mod id;
mod jwk;
mod node;
mod order;
pub mod rfc3339;

pub use certificate::NodeCertificate;
pub use challenge::{ChallengesRequest, HttpChallenge};
pub use error::{ErrorBody, ErrorCode, ErrorDetail, ErrorResponse};
pub use id::{
    ApiKeyId, BundleId, CertificateId, DriftId, EnrolmentTokenId, IdentityId, InstanceId,
    InvitationId, ManagedCertificateId, NodeEventId, NodeId, OrgId, ProjectId, RolloutId, SecretId,
    ServiceId, SessionId, SigningKeyId, UpstreamId, UserId, WebhookDeliveryId, WebhookId,
};
pub use jwk::{JsonWebKey, JsonWebKeySet, endorsed_text};
pub use node::{
    ConnectionTraffic, EventsRequest, Health, HeartbeatRequest, HeartbeatResponse,
    LATENCY_BOUNDS_MS, NodeEvent, NodeStatus, RegisterRequest, RegisterResponse, RouteTraffic,
    TokenResponse, Traffic, Verdict,
};
pub use order::{Confirmation, DesiredState, Order, Trial};
