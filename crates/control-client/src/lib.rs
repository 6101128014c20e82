//! Client of the control plane, for a node.
//!
//! [`Machine`] makes the decisions, without network, disk or clock. [`Client`] executes its actions
//! in order, on a separate thread so that no worker of the proxy waits.

mod bundle;
mod error;
mod event;
mod host;
mod state;
mod trust;

mod machine;
pub mod reference;

mod channel;
mod driver;
mod sealed_certificates;
mod settings;
mod storage;

pub use bundle::{Bundle, Certificates, HeldCertificate, OwnVersions, UnpackedFiles};
pub use driver::Client;
pub use error::{ClientError, OrderError};
pub use event::{Event, EventKind, RefusalReason};
pub use host::{Host, Measured, Observation, Renewed, Started};
pub use machine::{Action, Assignment, Machine, Outcome, Served};
pub use settings::Settings;
pub use state::{Answer, Identity, PersistedState};
pub use storage::{Storage, StoredState};
pub use trust::{PinnedKey, Trust};
