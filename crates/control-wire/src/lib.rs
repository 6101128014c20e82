//! What nodes, clients and the control plane say to each other.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod error;
mod id;

pub use error::{ErrorBody, ErrorCode, ErrorDetail, ErrorResponse};
pub use id::{
    ApiKeyId, BundleId, CertificateId, DriftId, EnrolmentTokenId, NodeId, OrgId, ProjectId,
    RolloutId, SecretId, ServiceId, SessionId, SigningKeyId, UpstreamId, UserId,
};
