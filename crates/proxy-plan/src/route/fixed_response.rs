//! Fixed responses to a route's requests.

use http::{HeaderValue, StatusCode};
use proxy_errors::{Detail, Problem, Reason};
use proxy_model as model;
use std::sync::Arc;

/// A compiled response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedResponsePlan {
    /// Status.
    pub status: StatusCode,
    /// Body; `None` for none, or for the proxy's own error.
    pub body: Option<Arc<str>>,
    /// `Content-Type` of the body.
    pub content_type: HeaderValue,
}

impl FixedResponsePlan {
    pub(crate) fn compile(response: &model::FixedResponse) -> Self {
        let model::FixedResponse {
            place: _,
            status,
            body,
            content_type,
        } = response;
        Self {
            status: StatusCode::from_u16(**status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            body: body.as_ref().map(|body| body.as_str().into()),
            content_type: content_type.value.clone(),
        }
    }

    /// The problem that the log names for a status of 4xx or 5xx.
    #[must_use]
    pub fn problem(&self) -> Option<Problem> {
        let reason = if self.status.is_client_error() {
            Reason::RespondClientError
        } else if self.status.is_server_error() {
            Reason::RespondServerError
        } else {
            return None;
        };
        Some(Problem::new(reason, Detail::None).with_status(self.status))
    }
}
