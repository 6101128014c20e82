//! Commands: authorize, load, decide, store, notify.
//!
//! Each handler is a method of [`App`] with these steps. The first line of each domain operation
//! checks the permission, so a handler cannot omit it.
#![expect(
    clippy::missing_errors_doc,
    reason = "`Error` says when each of its variants occurs"
)]

mod app;
mod call;
mod configuration;
mod error;
pub mod metric;

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

pub use account::api_key::ApiKeyTenant;
pub use account::authenticate::Presented;
pub use account::invitation::{Joined, NewAccount, OwnInvitation};
pub use account::second_factor::{NewSecondFactor, SecondFactor, TotpSetup};
pub use account::session::{NewSession, SessionInfo};
pub use account::sign_in::{SignedIn, StrongProof};
pub use account::user::Identity;
pub use app::acme::authorities::AcmeAuthorities;
pub use app::changes::{ChangeScope, Changes, Waiter, Wake};
pub use app::named_tenant::NamedTenant;
pub use app::permits::{AdmittedBody, BodyPermit, MAX_SMALL_BYTES};
pub use app::quota::OrgLimits;
pub use app::rate_limit::Allowance;
pub use app::report_budget::MAX_REPORT_BYTES;
pub use app::sso_site::SsoSite;
pub use app::{App, Environment};
pub use audit::AuditExport;
pub use bundle::archive::{Archive, Verification};
pub use bundle::preview::{Preview, PreviewComparison};
pub use bundle::{BundleSource, NewBundle};
pub use call::visit::Visit;
pub use call::{Call, NO_VERSION};
pub use configuration::Diagnostic;
pub use configuration::compiler::ListenAddresses;
pub use configuration::diff::{
    Comparison, FileChange, PartMoved, RequestsMoved, RiskView, SettingChange,
};
pub use configuration::explanation::RequestQuestion;
pub use configuration::replay::{KindMoved, Replayed};
pub use control_bundle::Files;
pub use control_store::{
    AuditArchive, AuditChange, AuditFilter, AuditPage, AuditRecord, AuditVerification,
    BundleFilter, CertificateFilter, CommandRecord, DriftFilter, DueWebhook, Lease, ListFilter,
    Member, NamedProjectRole, NodeCounts, NodeFilter, ObjectBytes, ObjectError, Objects, Page,
    PageOrder, Rate, RemovedMember, Reply, Reservation, RolloutFilter, RolloutNode, RolloutReach,
    ServiceFilter, ServiceUse, Sort, SortColumn, SortValue, SsoSignIn, StandingCounts, StopRecord,
    StoreError, StoredBatch, Versioned,
};
pub use definition::certificate::{Delivery, NewCertificate, certificate_tag};
pub use error::Error;
pub use installation::setup::{Installation, NewInstallation};
pub use installation::status::InstallationStatus;
pub use node::drift::DriftRemedy;
pub use node::order::{OrderTarget, desired_tag};
pub use node::traffic::summary::{NamedTraffic, TrafficFigures, TrafficPoint};
pub use node::traffic::{NodeTraffic, ProjectTraffic, TrafficTotals};
pub use node::{KeyRotation, RegisteredNode};
pub use project::turns::DeliveryTurns;
pub use proxy_plan::diff::Change;
pub use rollout::NodeSelection;
pub use rollout::progress::{RolloutProgress, StoredFigures, StoredSide};
pub use sso::arrival::SsoBrowser;
pub use sso::connection::{SsoOverview, acs_path};
pub use sso::sign_in::{SsoIntent, SsoOutcome, SsoRequest, SsoStart, SsoTicket};
