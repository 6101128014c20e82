//! Routes of drift: nodes that run another bundle than the ordered one.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, OrderName, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Json;
use axum::extract::State;
use control_app::{App, DriftFilter, DriftRemedy, PageOrder};
use control_domain::{Drift, DriftResolution, DriftState};
use control_wire::{BundleId, DriftId, NodeId, ProjectId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// A time in which a node differed from its order for more than two minutes.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DriftView {
    id: DriftId,
    node: NodeId,
    state: DriftState,
    /// The ordered bundle.
    desired: BundleId,
    /// The bundle that the node reports.
    active: Option<BundleId>,
    #[schema(value_type = String, format = DateTime)]
    opened_at: Timestamp,
    #[schema(value_type = Option<String>, format = DateTime)]
    resolved_at: Option<Timestamp>,
    /// Cause of its end.
    resolution: Option<DriftResolution>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<DriftView> = &[("opened_at", SortBy::Id)];

/// Filters and page of drifts.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DriftQuery {
    /// Only drifts in this state.
    state: Option<DriftState>,
    /// Only drifts of this node.
    node: Option<NodeId>,
    /// Field to sort by, with `-` before it from the greatest: `opened_at`. Excludes `order`.
    #[param(pattern = "^-?(opened_at)$", example = "-opened_at")]
    sort: Option<String>,
    /// Order by creation; the newest first if absent.
    #[param(inline)]
    order: Option<OrderName>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Remedies for a drift.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Remedy {
    /// The node is ordered to run its assigned bundle again.
    Reorder,
    /// The node is ordered to run its current bundle.
    Accept,
}

/// Resolution of a drift.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResolveDriftRequest {
    /// The remedy; absent: `reorder`.
    remedy: Option<Remedy>,
}

impl From<&Drift> for DriftView {
    fn from(drift: &Drift) -> Self {
        let Drift {
            id,
            tenant: _,
            node,
            state,
            desired,
            active,
            opened_at,
            resolved_at,
            resolution,
        } = drift;
        Self {
            id: *id,
            node: *node,
            state: *state,
            desired: *desired,
            active: *active,
            opened_at: *opened_at,
            resolved_at: *resolved_at,
            resolution: *resolution,
        }
    }
}

/// The drifts of a project.
#[utoipa::path(
    get, path = "/projects/{project}/drift", operation_id = "list_drift", tag = "drift",
    params(DriftQuery), responses((status = 200, body = List<DriftView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(project): Path<ProjectId>,
    Query(query): Query<DriftQuery>,
) -> Result<Json<List<DriftView>>, Problem> {
    let DriftQuery {
        state,
        node,
        sort,
        order,
        limit,
        cursor,
    } = query;
    let query = PageQuery {
        sort,
        order,
        limit,
        cursor,
    };
    let page = query.page(SORTED, PageOrder::Newest)?;
    let filter = DriftFilter { state, node };
    let found = app.drifts(&call, project, &filter, page.page).await?;
    let views = found.iter().map(|found| DriftView::from(&found.value));
    Ok(page.list(views.collect(), |view| view.id.0))
}

/// One drift.
#[utoipa::path(
    get, path = "/projects/{project}/drift/{drift}", operation_id = "get_drift", tag = "drift",
    responses((status = 200, body = DriftView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, drift)): Path<(ProjectId, DriftId)>,
) -> Result<Resource<DriftView>, Problem> {
    let found = app.drift(&call, project, drift).await?;
    let view = DriftView::from(&found.value);
    Ok(Resource::found(found.version, view))
}

/// Ends a drift with a new order to its node: for its assigned bundle, or for its current one.
#[utoipa::path(
    post, path = "/projects/{project}/drift/{drift}/resolve", operation_id = "resolve_drift",
    tag = "drift", request_body = ResolveDriftRequest,
    responses((status = 200, body = DriftView))
)]
pub(crate) async fn resolve(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, drift)): Path<(ProjectId, DriftId)>,
    Body(ResolveDriftRequest { remedy }): Body<ResolveDriftRequest>,
) -> Result<Resource<DriftView>, Problem> {
    let remedy = match remedy {
        None | Some(Remedy::Reorder) => DriftRemedy::Reorder,
        Some(Remedy::Accept) => DriftRemedy::Accept(None),
    };
    let changed = app.resolve_drift(&call, project, drift, remedy).await?;
    let view = DriftView::from(&changed.value);
    Ok(Resource::found(changed.version, view))
}
