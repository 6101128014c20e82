//! Responses to refused or failed requests. Forms are shown again with the entered values.

use crate::account::proof;
use crate::frame::failure_page::render;
use crate::frame::form::Faults;
use crate::frame::held::HeldForm;
use crate::page::Page;
use crate::request::failure::Failure;
use crate::request::fields::{Fields, csrf_token};
use crate::request::visit::{Caller, Visit};
use crate::ui::Ui;
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use control_app::Error;
use control_domain::{Access, Refusal};
use control_http::{cookie, is_same_origin};

/// Data for the response to a refused request.
#[derive(Debug)]
pub(super) struct Rejection {
    pub(super) failure: Failure,
    /// The actor, if a proof of identity would permit its form.
    pub(super) caller: Option<Caller>,
    /// Status and faults of a wrong proof.
    pub(super) proof: Option<(StatusCode, Faults)>,
}

impl Rejection {
    /// Rejection of a form that lacks a proof of identity, or has a wrong one.
    pub(super) fn unproved(
        refusal: Refusal,
        caller: Caller,
        proof: Option<(StatusCode, Faults)>,
    ) -> Self {
        Self {
            failure: refusal.into(),
            caller: Some(caller),
            proof,
        }
    }
}

impl From<Failure> for Rejection {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            caller: None,
            proof: None,
        }
    }
}

impl From<Error> for Rejection {
    fn from(error: Error) -> Self {
        Failure::from(error).into()
    }
}

impl From<Refusal> for Rejection {
    fn from(refusal: Refusal) -> Self {
        Failure::from(refusal).into()
    }
}

/// Page of a failure; for a missing proof of identity, the form that asks for it.
pub(super) async fn answer(
    ui: &Ui,
    rejection: Rejection,
    visit: &Visit,
    caller: Option<&Caller>,
    held: Option<HeldForm>,
) -> Response {
    let caller = rejection.caller.as_ref().or(caller);
    let (path, caller, held) = match (rejection.failure, caller, held) {
        (Failure::Proof(path), Some(caller), Some(held)) => (path, caller, held),
        (failure, caller, held) => return render(ui, failure, visit, caller, held).await,
    };
    let (status, faults) = rejection
        .proof
        .unwrap_or((StatusCode::FORBIDDEN, Faults::default()));
    let is_factor_missing = path == "/profile/totp";
    match proof::ask(ui, caller, held, faults, is_factor_missing).await {
        Ok(mut response) => {
            *response.status_mut() = status;
            response
        }
        Err(failure) => render(ui, failure, visit, Some(caller), None).await,
    }
}

/// The entered values of a form, to be shown again.
pub(super) fn held(page: &Page, request: &Request, visit: &Visit) -> Option<HeldForm> {
    if page.method != Method::POST {
        return None;
    }
    let fields = request.extensions().get::<Fields>()?;
    Some(HeldForm::new(&visit.path, &visit.csrf, fields))
}

/// Rejection of a request before its form is read. Reads the form only to show it again, and few at
/// once, because the sender is not authenticated.
pub(super) async fn held_unread(
    ui: &Ui,
    page: &Page,
    request: &mut Request,
    visit: &Visit,
) -> Option<HeldForm> {
    if let Some(held) = held(page, request, visit) {
        return Some(held);
    }
    let is_form = page.method == Method::POST && page.access != Access::Public && !page.is_linked();
    let session = cookie(request.headers(), ui.cookie.name()).map(csrf_token);
    let csrf = session.filter(|_| is_form && is_same_origin(request))?;
    let _permit = ui.unread_forms.try_acquire().ok()?;
    let body = std::mem::take(request.body_mut());
    let fields = Fields::read(request.headers(), body, page.max_form_bytes);
    let held = HeldForm::new(&visit.path, &csrf, &fields.await.ok()?);
    Some(held).filter(|held| !held.is_empty())
}
