//! Renders failures as pages.

use crate::frame::held::HeldForm;
use crate::frame::{Frame, show};
use crate::request::failure::{Failure, FailureText};
use crate::request::note::redirect;
use crate::request::path::with_return_path;
use crate::request::visit::{Caller, Visit};
use crate::ui::Ui;
use askama::Template;
use axum::Extension;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_http::{CorrelationId, prefers_html};

#[derive(Template)]
#[template(path = "failure.html")]
struct FailurePage {
    frame: Frame,
    failure_text: FailureText,
    /// Set if the session that sent the form has ended.
    has_ended: bool,
    /// Form that was not executed.
    held: Option<HeldForm>,
    /// False if the form would be refused again.
    can_send: bool,
    /// Page that the form was sent from, if known.
    form_page: Option<String>,
    correlation_id: String,
}

/// Page of a failure, with the entered values, so that none of them are lost.
pub(crate) async fn render(
    ui: &Ui,
    failure: Failure,
    visit: &Visit,
    caller: Option<&Caller>,
    held: Option<HeldForm>,
) -> Response {
    let held = held.filter(|held| !held.is_empty());
    let has_ended = matches!(failure, Failure::SignIn);
    let failure_text = match failure {
        Failure::See(path) => return redirect(&path),
        Failure::SignIn if held.is_none() => {
            return redirect(&with_return_path("/sign-in", &visit.back));
        }
        Failure::SignIn => FailureText::ended(),
        Failure::Proof(_) if visit.is_live => return StatusCode::FORBIDDEN.into_response(),
        Failure::Proof(path) => return redirect(&with_return_path(path, &visit.back)),
        Failure::Text(failure_text) => *failure_text,
    };
    let correlation_id = visit.correlation_id.clone();
    if let Some(cause) = &failure_text.cause {
        tracing::error!(correlation_id, cause, "page failed");
    }
    let title = heading(&failure_text);
    let (status, retry_after) = (failure_text.status, failure_text.retry_after);
    let page = FailurePage {
        frame: Frame::for_failure(ui, title, visit, caller).await,
        has_ended,
        held,
        can_send: status != StatusCode::UNPROCESSABLE_ENTITY,
        form_page: Some(visit.back.clone()).filter(|back| back != "/" && *back != visit.path),
        failure_text,
        correlation_id,
    };
    let mut response = show(&page);
    *response.status_mut() = status;
    if let Some(seconds) = retry_after {
        let field = (header::RETRY_AFTER, seconds.into());
        response.headers_mut().extend([field]);
    }
    response
}

/// Status text and sentence, for title and heading.
fn heading(failure_text: &FailureText) -> String {
    let status = failure_text.status.canonical_reason().unwrap_or_default();
    format!("{status}. {}", failure_text.sentence.trim_end_matches('.'))
}

/// Response for an unknown path: a page for browsers, only the status for other clients.
pub(crate) async fn no_page(
    correlation_id: Option<Extension<CorrelationId>>,
    headers: HeaderMap,
) -> Response {
    plain(Failure::not_found(), correlation_id, &headers)
}

/// Response for a method that the path does not support, for example when a form's URL is opened in
/// the address bar.
pub(crate) async fn no_method(
    correlation_id: Option<Extension<CorrelationId>>,
    headers: HeaderMap,
) -> Response {
    plain(Failure::no_method(), correlation_id, &headers)
}

/// Response to a failure without an actor: a page for browsers, only the status for other clients.
fn plain(
    failure: Failure,
    correlation_id: Option<Extension<CorrelationId>>,
    headers: &HeaderMap,
) -> Response {
    let failure_text = match failure {
        Failure::Text(failure_text) => *failure_text,
        Failure::See(_) | Failure::SignIn | Failure::Proof(_) => {
            return StatusCode::NOT_FOUND.into_response();
        }
    };
    let status = failure_text.status;
    if !prefers_html(headers) {
        return status.into_response();
    }
    let page = FailurePage {
        frame: Frame::bare(&heading(&failure_text), None),
        has_ended: false,
        held: None,
        can_send: false,
        form_page: None,
        failure_text,
        correlation_id: correlation_id.map_or_else(String::new, |Extension(CorrelationId(id))| id),
    };
    let mut response = show(&page);
    *response.status_mut() = status;
    response
}
