//! Status of the installation, for its administrator.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::Access;
use control_store::Lease;
use jiff::SignedDuration;

/// Status of the installation, as seen by the replica that answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallationStatus {
    /// Release of this replica.
    pub version: &'static str,
    /// `sqlite` or `postgresql`.
    pub database: &'static str,
    /// Number of the newest applied migration.
    pub schema: i64,
    /// Size of the database, including free pages.
    pub database_bytes: i64,
    /// Total size of the bundles' archives.
    pub archive_bytes: i64,
    /// False if a write of this replica has failed within the last 5 seconds.
    pub is_writable: bool,
    /// False if this replica's clock differs too much from the database's to serve.
    pub is_clock_right: bool,
    /// The database's clock minus this replica's; `None` on SQLite, which has no separate clock.
    pub clock_offset: Option<SignedDuration>,
    /// Leases of background jobs, by name; an ended lease belongs to no replica.
    pub leases: Vec<Lease>,
}

impl App {
    /// Reads the status of the installation.
    ///
    /// # Errors
    ///
    /// [`Error`] if the actor does not administer the installation, or the database fails.
    pub async fn installation_status(&self, call: &Call) -> Result<InstallationStatus, Error> {
        call.actor.holds(Access::InstanceAdmin)?;
        let mut tx = self.store.read().await?;
        let (database, schema) = tx.database().await?;
        let bytes = tx.stored_bytes().await?;
        let leases = tx.leases().await?;
        let shared = tx.database_time().await?;
        let clock_offset = shared.map(|shared| shared.duration_since(self.precise_now()));
        Ok(InstallationStatus {
            version: env!("CARGO_PKG_VERSION"),
            database,
            schema,
            database_bytes: bytes.database,
            archive_bytes: bytes.archives,
            is_writable: !self.is_unwritable(),
            is_clock_right: !self.is_clock_wrong(),
            clock_offset,
            leases,
        })
    }
}
