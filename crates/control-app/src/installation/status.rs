//! The state of the installation, for its administrator.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use control_domain::Access;
use control_store::Lease;
use jiff::SignedDuration;

/// The state of the installation, as seen by the replica of the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstallationStatus {
    /// The version of this replica.
    pub version: &'static str,
    /// `sqlite` or `postgresql`.
    pub database: &'static str,
    /// The number of the newest migration.
    pub schema: i64,
    /// Bytes of the database, free pages included.
    pub database_bytes: i64,
    /// Bytes of the archives of all bundles.
    pub archive_bytes: i64,
    /// True if the last writes of this replica succeeded.
    pub is_writable: bool,
    /// True if this replica's clock is near enough to the database's.
    pub is_clock_right: bool,
    /// The database's clock minus this replica's; `None` on SQLite, which has no separate clock.
    pub clock_offset: Option<SignedDuration>,
    /// Background work, by name; a lease that has ended belongs to no replica.
    pub leases: Vec<Lease>,
}

impl App {
    /// The state of the installation.
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
