//! Durable state: SQLite or PostgreSQL behind one text of SQL.
//!
//! A command is one [`Transaction`]. Two writers of one row never overwrite each other: an update
//! names the version that it read, and is [`StoreError::Stale`] if there is a newer one.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod error;
mod objects;
mod pool;
mod row;
mod sqlite;
mod statement;
mod store;
mod versioned;

mod audit;
mod audit_entry;
mod audit_event;
mod audit_log;
mod lease;
mod rate_limit;
mod reply;

mod api_key;
mod bundle;
mod bundle_certificate;
mod certificate;
mod drift;
mod enrolment_token;
mod heartbeat;
mod identity;
mod invitation;
mod maker;
mod membership;
mod node;
mod node_event;
mod node_key;
mod node_list;
mod node_order;
mod org;
mod project;
mod recall;
mod rollout;
mod rollout_node;
mod rollout_revert;
mod rollout_sample;
mod second_factor;
mod secret;
mod service;
mod session;
mod setup_link;
mod sign_in;
mod signing_key;
mod sso_attempt;
mod sso_connection;
mod sso_sign_in;
mod upload;
mod upstream;
mod user;

pub use audit::AuditVerification;
pub use audit_event::{AuditChange, AuditEntry};
pub use audit_log::{AuditFilter, AuditPage, AuditRecord};
pub use bundle::BundleFilter;
pub use certificate::CertificateFilter;
pub use drift::{Divergence, DriftFilter};
pub use error::StoreError;
pub use heartbeat::WrittenHeartbeat;
pub use maker::EndedCredential;
pub use membership::Member;
pub use node_key::TokenIssuer;
pub use node_list::{NodeCounts, NodeFilter, StandingCounts};
pub use node_order::StoredOrder;
pub use objects::{ObjectBytes, ObjectError, Objects};
pub use rate_limit::{Group, Rate};
pub use recall::NodeTarget;
pub use reply::{Reply, Reservation};
pub use rollout::{RolloutFilter, StoredBatch};
pub use rollout_node::RolloutNode;
pub use rollout_revert::Revert;
pub use second_factor::StoredTotp;
pub use secret::StoredSecret;
pub use service::ServiceFilter;
pub use sso_attempt::SsoPending;
pub use sso_sign_in::SsoSignIn;
pub use store::{Store, Transaction};
pub use upload::{AbandonedUpload, Upload};
pub use versioned::{Page, PageOrder, Versioned};
