//! Route that explains the decision on a request under a bundle.

use crate::request::extract::{Body, Caller, Path};
use crate::response::problem::Problem;
use axum::Json;
use axum::extract::State;
use control_app::{App, RequestQuestion};
use control_wire::{BundleId, ErrorResponse, ProjectId};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use utoipa::ToSchema;

/// A request to be explained. It is not sent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QuestionBody {
    /// Absent: `GET`.
    #[schema(max_length = 64)]
    method: Option<String>,
    /// A path with or without a query, or an absolute http or https URL.
    #[schema(max_length = 16384)]
    url: String,
    /// Header fields, at most 100. A `host` has precedence over the URL's.
    #[serde(default)]
    headers: BTreeMap<String, HeaderValues>,
    /// The client's address.
    #[schema(value_type = Option<String>)]
    client_ip: Option<IpAddr>,
    /// Absent: the first listener of the URL's port and scheme, else of its scheme, else the first of all.
    #[schema(max_length = 200)]
    listener: Option<String>,
}

/// A value, or several for a repeated field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum HeaderValues {
    /// One field.
    One(String),
    /// Several fields of the name.
    Several(Vec<String>),
}

impl From<QuestionBody> for RequestQuestion {
    fn from(body: QuestionBody) -> Self {
        let QuestionBody {
            method,
            url,
            headers,
            client_ip,
            listener,
        } = body;
        let mut fields = Vec::new();
        for (name, values) in headers {
            let values = match values {
                HeaderValues::One(value) => vec![value],
                HeaderValues::Several(values) => values,
            };
            fields.extend(values.into_iter().map(|value| (name.clone(), value)));
        }
        Self {
            method: method.unwrap_or_else(|| "GET".to_owned()),
            url,
            headers: fields,
            client_ip,
            listener,
        }
    }
}

/// The decision of a proxy with this bundle on a request, with its reasons.
/// It is the document of `proxyd explain --json`. All targets count as healthy, and no request is sent.
#[utoipa::path(
    post, path = "/projects/{project}/bundles/{bundle}/explain", operation_id = "explain_request",
    tag = "bundles", request_body = QuestionBody, responses(
        (status = 200, body = Value),
        (status = 409, description = "The bundle was rejected: it has no archive", body = ErrorResponse),
        (status = 422, description = "No client could send the request, or the current checks refuse the bundle", body = ErrorResponse)
    )
)]
pub(crate) async fn explain(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((project, bundle)): Path<(ProjectId, BundleId)>,
    Body(body): Body<QuestionBody>,
) -> Result<Json<Value>, Problem> {
    Ok(Json(
        app.explain_request(&call, project, bundle, body.into())
            .await?,
    ))
}
