//! Conversion of failures to pages.

use crate::frame::{Frame, show};
use crate::request::failure::{Failure, Told};
use crate::request::note::see;
use crate::request::path::leading_back;
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
    told: Told,
    correlation_id: String,
}

/// The page of a failure.
pub(crate) async fn render(
    ui: &Ui,
    failure: Failure,
    visit: &Visit,
    caller: Option<&Caller>,
) -> Response {
    let told = match failure {
        Failure::See(path) => return see(&path),
        Failure::Proof(_) if visit.is_live => return StatusCode::FORBIDDEN.into_response(),
        Failure::Proof(path) => return see(&leading_back(path, &visit.back)),
        Failure::Told(told) => *told,
    };
    let correlation_id = visit.correlation_id.clone();
    if let Some(cause) = &told.cause {
        tracing::error!(correlation_id, cause, "page failed");
    }
    let title = heading(&told);
    let (status, retry_after) = (told.status, told.retry_after);
    let page = FailurePage {
        frame: Frame::for_failure(ui, title, visit, caller).await,
        told,
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

/// The status text and the sentence: title and heading of the page.
fn heading(told: &Told) -> String {
    let status = told.status.canonical_reason().unwrap_or_default();
    format!("{status}. {}", told.sentence.trim_end_matches('.'))
}

/// Answer outside of the table's paths: a page for browsers, nothing for programs.
pub(crate) async fn no_page(
    correlation_id: Option<Extension<CorrelationId>>,
    headers: HeaderMap,
) -> Response {
    plain(Failure::not_found(), correlation_id, &headers)
}

/// Answer to a method that a path of the table does not take, such as a form's address in the address bar.
pub(crate) async fn no_method(
    correlation_id: Option<Extension<CorrelationId>>,
    headers: HeaderMap,
) -> Response {
    plain(Failure::no_method(), correlation_id, &headers)
}

/// A failure outside of the table, without an actor: a page for browsers, only the status for programs.
fn plain(
    failure: Failure,
    correlation_id: Option<Extension<CorrelationId>>,
    headers: &HeaderMap,
) -> Response {
    let told = match failure {
        Failure::Told(told) => *told,
        Failure::See(_) | Failure::Proof(_) => return StatusCode::NOT_FOUND.into_response(),
    };
    let status = told.status;
    if !prefers_html(headers) {
        return status.into_response();
    }
    let page = FailurePage {
        frame: Frame::bare(&heading(&told), None),
        told,
        correlation_id: correlation_id.map_or_else(String::new, |Extension(CorrelationId(id))| id),
    };
    let mut response = show(&page);
    *response.status_mut() = status;
    response
}
