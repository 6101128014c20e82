//! Routes of the audit log.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::request::extract::{Caller, Path, Query};
use crate::request::page::read_limit;
use crate::response::problem::Problem;
use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use control_app::{App, AuditChange, AuditExport, AuditFilter, AuditRecord, Error};
use control_wire::{OrgId, ProjectId, rfc3339};
use futures_util::stream::try_unfold;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

/// An entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditEntryView {
    /// The number in the organization's log, from 1.
    seq: i64,
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The kind of actor, such as `user` or `api_key`.
    actor_kind: String,
    actor: Uuid,
    /// The actor's name at that time; a user with the e-mail address, a key with its maker. Absent
    /// in older entries.
    actor_name: Option<String>,
    /// The address of the client; absent for the control plane's own work.
    client_ip: Option<String>,
    /// Absent for events of the organization as a whole.
    project: Option<ProjectId>,
    /// The action, such as `project.created`.
    action: String,
    /// Identifier of the changed object.
    subject: Uuid,
    correlation_id: String,
    /// The subject before; absent for a new one. A value above 16 KiB is replaced by
    /// `omitted_bytes`.
    before: Option<Value>,
    /// The subject after; absent for deleted ones.
    after: Option<Value>,
    /// The entry's link of the chain, an HMAC over it and the previous one, verified by `controld
    /// audit verify`.
    hash: String,
}

/// A page of the log, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AuditList {
    items: Vec<AuditEntryView>,
    /// Cursor of the next page; null on the last page. A page scans at most 5 000 entries, so one
    /// with fewer items than requested may have a next page.
    next_cursor: Option<i64>,
}

/// Filters of entries.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditQuery {
    /// Only actions of this actor.
    actor: Option<Uuid>,
    /// Only this action, such as `project.created`; `project.` selects all with that prefix.
    #[param(pattern = "^[a-z._]+$")]
    action: Option<String>,
    /// Only actions on this subject.
    subject: Option<Uuid>,
    /// Only actions in this project.
    project: Option<Uuid>,
    /// Only entries of this time and later.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "rfc3339::optional")]
    since: Option<Timestamp>,
    /// Only entries before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "rfc3339::optional")]
    until: Option<Timestamp>,
}

/// Filters and page of entries.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditPageQuery {
    /// Only actions of this actor.
    actor: Option<Uuid>,
    /// Only this action, such as `project.created`; `project.` selects all with that prefix.
    #[param(pattern = "^[a-z._]+$")]
    action: Option<String>,
    /// Only actions on this subject.
    subject: Option<Uuid>,
    /// Only actions in this project.
    project: Option<Uuid>,
    /// Only entries of this time and later.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "rfc3339::optional")]
    since: Option<Timestamp>,
    /// Only entries before this time.
    #[param(value_type = Option<String>, format = DateTime)]
    #[serde(default, deserialize_with = "rfc3339::optional")]
    until: Option<Timestamp>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<i64>,
}

impl AuditQuery {
    fn filter(self) -> Result<AuditFilter, Problem> {
        let Self {
            actor,
            action,
            subject,
            project,
            since,
            until,
        } = self;
        let known = |c: char| c.is_ascii_lowercase() || matches!(c, '.' | '_');
        if let Some(action) = &action
            && (action.is_empty() || !action.chars().all(known))
        {
            return Err(Problem::bad_query("action: is not of a-z, `.` and `_`"));
        }
        Ok(AuditFilter {
            actor,
            action,
            subject,
            project: project.map(ProjectId),
            since,
            until,
        })
    }
}

impl From<AuditRecord> for AuditEntryView {
    fn from(record: AuditRecord) -> Self {
        let AuditRecord {
            seq,
            at,
            actor_kind,
            actor,
            actor_name,
            client_ip,
            project,
            action,
            subject,
            correlation_id,
            change: AuditChange { before, after },
            hash,
        } = record;
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        Self {
            seq,
            at,
            actor_kind,
            actor,
            actor_name,
            client_ip,
            project,
            action,
            subject,
            correlation_id,
            before: json(before),
            after: json(after),
            hash,
        }
    }
}

/// The audit log of an organization, newest first.
#[utoipa::path(
    get, path = "/orgs/{org}/audit", operation_id = "list_audit", tag = "audit",
    params(AuditPageQuery), responses((status = 200, body = AuditList))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<AuditPageQuery>,
) -> Result<Json<AuditList>, Problem> {
    let AuditPageQuery {
        actor,
        action,
        subject,
        project,
        since,
        until,
        limit,
        cursor: before,
    } = query;
    let filter = AuditQuery {
        actor,
        action,
        subject,
        project,
        since,
        until,
    };
    let filter = filter.filter()?;
    let limit = read_limit(limit)?;
    let found = app.audit_log(&call, org, &filter, before, limit).await?;
    Ok(Json(AuditList {
        items: found
            .records
            .into_iter()
            .map(AuditEntryView::from)
            .collect(),
        next_cursor: found.next,
    }))
}

/// The audit log of an organization as JSON lines, oldest first.
/// It ends with the newest entry at the time of the request. If the connection ends without
/// the last chunk, the export is incomplete.
#[utoipa::path(
    get, path = "/orgs/{org}/audit/export", operation_id = "export_audit", tag = "audit",
    params(AuditQuery),
    responses((status = 200, body = AuditEntryView, content_type = "application/x-ndjson"))
)]
pub(crate) async fn export(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<AuditQuery>,
) -> Result<Response, Problem> {
    let export = app.export_audit(&call, org, query.filter()?).await?;
    let body = Body::from_stream(try_unfold(export, next_lines));
    let mut response = body.into_response();
    let lines = HeaderValue::from_static("application/x-ndjson");
    response.headers_mut().insert(header::CONTENT_TYPE, lines);
    Ok(response)
}

async fn next_lines(mut export: AuditExport) -> Result<Option<(Bytes, AuditExport)>, Error> {
    let records = export.next().await.inspect_err(|error| {
        tracing::error!(%error, "an export of the audit log was broken off");
    })?;
    let Some(records) = records else {
        return Ok(None);
    };
    let mut text = String::new();
    for record in records {
        let line = serde_json::to_string(&AuditEntryView::from(record));
        text.push_str(&line.unwrap_or_default());
        text.push('\n');
    }
    Ok(Some((Bytes::from(text), export)))
}
