//! Persistent state in SQLite or PostgreSQL, with the same SQL statements for both.
//!
//! Each command is one [`Transaction`]. Concurrent writers never overwrite each other: an update
//! names the version that was read, and fails as [`StoreError::Stale`] if another version is
//! stored.
#![expect(
    clippy::missing_errors_doc,
    reason = "`StoreError` says when each of its variants occurs"
)]

mod error;
mod row;
mod statement;
mod store;
mod versioned;

mod audit;
mod installation;

mod account;
mod org;
mod project;
mod sso;

mod bundle;
mod definition;
mod node;
mod rollout;

pub use account::ended_credential::EndedCredential;
pub use account::second_factor::StoredTotp;
pub use account::session::SessionFilter;
pub use audit::AuditVerification;
pub use audit::archive::AuditArchive;
pub use audit::log::{AuditFilter, AuditPage, AuditRecord};
pub use audit::rollout_command::{CommandRecord, StopRecord};
pub use bundle::BundleFilter;
pub use bundle::objects::{ObjectBytes, ObjectError, Objects};
pub use bundle::retention::StoredBytes;
pub use bundle::upload::{AbandonedUpload, Upload};
pub use definition::certificate::CertificateFilter;
pub use definition::managed_certificate::challenge::{CertificateSignals, ServingNode};
pub use definition::service::{ServiceFilter, ServiceUse};
pub use error::StoreError;
pub use installation::lease::Lease;
pub use installation::rate_limit::{Group, Rate};
pub use installation::reply::{Reply, Reservation};
pub use installation::secret::StoredSecret;
pub use node::drift::{Divergence, DriftFilter};
pub use node::heartbeat::{PackedHeartbeat, QuietHeartbeat, ReplacedCounters, WrittenHeartbeat};
pub use node::key::TokenIssuer;
pub use node::list::{NodeCounts, NodeFilter, OrderedBundle, StandingCounts};
pub use node::order::StoredOrder;
pub use node::traffic::{PackedStep, PackedTotal};
pub use org::membership::Member;
pub use org::removed_member::RemovedMember;
pub use project::delivery::DueWebhook;
pub use project::role::NamedProjectRole;
pub use project::webhook::ProjectAction;
pub use rollout::node::RolloutNode;
pub use rollout::reach::RolloutReach;
pub use rollout::recall::NodeTarget;
pub use rollout::revert::Revert;
pub use rollout::{RolloutFilter, StoredBatch};
pub use sso::attempt::{SsoPending, SsoTicketContents};
pub use sso::sign_in::SsoSignIn;
pub use store::audit_event::{AuditChange, AuditEntry};
pub use store::{ConnectionCounts, Store, Transaction};
pub use versioned::{ListFilter, Page, PageOrder, Sort, SortColumn, SortValue, Versioned};
