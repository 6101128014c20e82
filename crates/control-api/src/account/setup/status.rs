//! Route of the installation's status.

use crate::request::extract::Caller;
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, InstallationStatus, Lease};
use jiff::Timestamp;
use serde::Serialize;
use std::sync::Arc;
use utoipa::ToSchema;
use uuid::Uuid;

/// The state of the installation, as seen by the replica of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InstallationStatusView {
    /// The version of this replica.
    version: &'static str,
    /// `sqlite` or `postgresql`.
    database: &'static str,
    /// The number of the newest migration.
    schema: i64,
    /// Free pages included.
    database_bytes: i64,
    /// Bytes of the archives of all bundles.
    archive_bytes: i64,
    /// True if the last writes of this replica succeeded.
    writable: bool,
    /// True if this replica's clock is near enough to the database's.
    clock_right: bool,
    /// The database's clock minus this replica's; null on SQLite.
    clock_offset_ms: Option<i64>,
    /// Background work, by name.
    leases: Vec<LeaseView>,
}

/// Work that one replica does.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct LeaseView {
    name: String,
    /// The replica, under the name that it chose at its start.
    holder: Uuid,
    /// Time after which another replica may take over.
    #[schema(value_type = String, format = DateTime)]
    ends_at: Timestamp,
}

impl From<Lease> for LeaseView {
    fn from(lease: Lease) -> Self {
        let Lease {
            name,
            holder,
            ends_at,
        } = lease;
        Self {
            name,
            holder,
            ends_at,
        }
    }
}

/// The version of this replica, its database, and the work in the background.
#[utoipa::path(
    get, path = "/installation", operation_id = "get_installation", tag = "setup",
    responses((status = 200, body = InstallationStatusView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
) -> Result<Json<InstallationStatusView>, Problem> {
    let InstallationStatus {
        version,
        database,
        schema,
        database_bytes,
        archive_bytes,
        is_writable,
        is_clock_right,
        clock_offset,
        leases,
    } = app.installation_status(&call).await?;
    let offset = clock_offset.map(|offset| i64::try_from(offset.as_millis()).unwrap_or(i64::MAX));
    Ok(Json(InstallationStatusView {
        version,
        database,
        schema,
        database_bytes,
        archive_bytes,
        writable: is_writable,
        clock_right: is_clock_right,
        clock_offset_ms: offset,
        leases: leases.into_iter().map(LeaseView::from).collect(),
    }))
}
