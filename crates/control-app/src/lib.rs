//! One command: authorise, load, decide, store, tell.
//!
//! Each handler is a method of [`App`] and reads in that order. The permission is the first line
//! of the domain's verb, so a handler cannot forget it.
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

mod app;
mod authenticate;
mod call;
mod changes;
mod error;
mod housekeeping;
mod idempotency;
mod order_signals;
mod outbound;
mod places;
mod rate_limit;
mod write_queue;

mod compiler;
mod configuration;
mod configuration_diff;

mod api_key;
mod approval;
mod assignment;
mod audit;
mod audit_event;
mod audit_record;
mod audit_value;
mod bundle;
mod bundle_archive;
mod certificate;
mod definition;
mod drift;
mod enrolment_token;
mod invitation;
mod master_key;
mod member;
pub mod metric;
mod node;
mod node_session;
mod order;
mod org;
mod password;
mod password_places;
mod private_keys;
mod project;
mod refused_sign_in;
mod rollout;
mod scheduler;
mod second_factor;
mod service;
mod session;
mod setup;
mod sign_in;
mod signing_key;
mod sso_admission;
mod sso_connection;
mod sso_failure;
mod sso_provider;
mod sso_sign_in;
mod sso_site;
mod upstream;
mod user;
mod user_event;
mod visit;

pub use api_key::ApiKeyPlace;
pub use app::{App, Environment};
pub use audit::AuditExport;
pub use authenticate::Presented;
pub use bundle::{BundleSource, NewBundle};
pub use bundle_archive::{Archive, Verification};
pub use call::Call;
pub use certificate::NewCertificate;
pub use changes::{Changes, Waiter, Wake};
pub use compiler::ListenAddresses;
pub use configuration::Diagnostic;
pub use configuration_diff::{
    Change, Comparison, FileChange, PartMoved, RequestsMoved, RiskView, SettingChange,
};
pub use control_bundle::Files;
pub use control_store::{
    AuditChange, AuditFilter, AuditPage, AuditRecord, AuditVerification, BundleFilter,
    CertificateFilter, DriftFilter, Member, NodeCounts, NodeFilter, ObjectBytes, ObjectError,
    Objects, Page, PageOrder, Rate, Reply, Reservation, RolloutFilter, RolloutNode, ServiceFilter,
    SsoSignIn, StandingCounts, StoreError, StoredBatch, Versioned,
};
pub use drift::DriftRemedy;
pub use error::Error;
pub use invitation::{Joined, NewAccount};
pub use node::{KeyRotation, RegisteredNode};
pub use order::{OrderTarget, desired_tag};
pub use places::UploadPlace;
pub use rate_limit::Allowance;
pub use rollout::{NodeSelection, RolloutProgress, StoredFigures, StoredSide};
pub use second_factor::{NewSecondFactor, SecondFactor, TotpSetup};
pub use session::{NewSession, SessionInfo};
pub use setup::{Installation, NewInstallation};
pub use sign_in::{SignedIn, StrongProof};
pub use sso_connection::{SsoOverview, acs_path};
pub use sso_sign_in::{SamlArrival, SsoBrowser, SsoOutcome, SsoRequest, SsoStart};
pub use sso_site::SsoSite;
pub use user::Identity;
pub use visit::Visit;
