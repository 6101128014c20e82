//! Renewed proof of identity, before operations that a stolen session must not permit.

use crate::account::profile::with_session;
use crate::account::sign_in::{WRONG_CODE, refused};
use crate::frame::form::{Faults, Form};
use crate::frame::held::HeldForm;
use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::redirect;
use crate::request::path::{own_or_root, with_return_path};
use crate::request::visit::Caller;
use crate::ui::Ui;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{Identity, StrongProof};
use control_auth::Password;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "prove.html")]
struct ProofPage {
    frame: Frame,
    form: Form,
    back: String,
    /// Address of the user, for password managers.
    email: String,
    kind: ProofKind,
}

#[derive(Template)]
#[template(path = "prove_form.html")]
struct ProofFormPage {
    frame: Frame,
    form: Form,
    /// Form that is submitted together with the proof.
    held: HeldForm,
    /// Address of the user, for password managers.
    email: String,
    kind: ProofKind,
}

/// A kind of proof available to the user.
enum ProofKind {
    Code,
    Password,
    /// Through the identity provider, which this path redirects to.
    Provider(String),
    /// None: the organization requires a second factor, which the user must set up first.
    Factor,
}

impl ProofKind {
    /// Returns true if the proof is entered in the same form.
    fn is_inline(&self) -> bool {
        matches!(self, Self::Code | Self::Password)
    }
}

/// The proof in a form's fields; `None` without one.
pub(crate) fn proof_of_form(fields: &Fields) -> Option<StrongProof> {
    if let Some(code) = fields.given("proof_code") {
        return Some(StrongProof::Code(code.to_owned()));
    }
    let password = fields.get("proof_password");
    (!password.is_empty()).then(|| StrongProof::Password(Password::new(password.to_owned())))
}

/// Message for a wrong proof.
pub(crate) fn wrong_words(proof: &StrongProof) -> &'static str {
    match proof {
        StrongProof::Code(_) => WRONG_CODE,
        StrongProof::Password(_) => "the password is wrong",
    }
}

/// Page that asks for the proof, and submits the pending form with it.
pub(crate) async fn ask(
    ui: &Ui,
    caller: &Caller,
    held: HeldForm,
    faults: Faults,
    is_factor_missing: bool,
) -> Result<Response, Failure> {
    let (email, has_password) = user(ui, caller).await?;
    let kind = if is_factor_missing {
        ProofKind::Factor
    } else {
        kind(ui, caller, has_password, "/profile").await?
    };
    Ok(shown(&ProofFormPage {
        frame: Frame::personal(
            ui,
            caller,
            NavEntry::Profile.titled("Confirm your identity"),
        )
        .await?,
        form: Form::refused(&caller.visit.csrf, Fields::default(), faults),
        held,
        email,
        kind,
    }))
}

/// Address of the user, and whether it has a password.
async fn user(ui: &Ui, caller: &Caller) -> Result<(String, bool), Failure> {
    Ok(match ui.app.identity(&caller.call).await? {
        Identity::User { user, .. } => (user.email.to_string(), user.password.is_some()),
        Identity::ApiKey { .. } => (String::new(), false),
    })
}

/// Shows the form for the proof.
pub(crate) async fn show(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let back = caller.visit.query.get("return").to_owned();
    let form = Form::new(&caller.visit.csrf, Fields::default());
    respond(&ui, &caller, form, &back).await
}

/// Verifies the password or the code, and redirects back.
pub(crate) async fn send(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let back = fields.get("return").to_owned();
    let proof = match fields.given("code") {
        Some(code) => StrongProof::Code(code.to_owned()),
        None => StrongProof::Password(Password::new(fields.get("password").to_owned())),
    };
    let wrong = wrong_words(&proof);
    match ui.app.prove_again(&caller.call, proof).await {
        Ok(secret) => Ok(with_session(&ui, &secret, redirect(own_or_root(&back)))),
        Err(error) => {
            let (status, faults) = refused(error, wrong)?;
            let form = Form::refused(&caller.visit.csrf, fields, faults);
            let mut response = respond(&ui, &caller, form, &back).await?;
            *response.status_mut() = status;
            Ok(response)
        }
    }
}

async fn respond(ui: &Ui, caller: &Caller, form: Form, back: &str) -> Result<Response, Failure> {
    let (email, has_password) = user(ui, caller).await?;
    Ok(shown(&ProofPage {
        frame: Frame::personal(ui, caller, NavEntry::Profile.titled("Prove it is you")).await?,
        kind: kind(ui, caller, has_password, back).await?,
        form,
        back: back.to_owned(),
        email,
    }))
}

async fn kind(
    ui: &Ui,
    caller: &Caller,
    has_password: bool,
    back: &str,
) -> Result<ProofKind, Failure> {
    if ui.app.second_factor(&caller.call).await?.is_some() {
        return Ok(ProofKind::Code);
    }
    if has_password {
        return Ok(ProofKind::Password);
    }
    let session = ui.app.current_session(&caller.call).await?;
    let provider = session.origin.provider;
    Ok(provider.map_or(ProofKind::Password, |org| {
        let path = with_return_path(&format!("/sso/{org}"), own_or_root(back));
        ProofKind::Provider(format!("{path}&prove=1"))
    }))
}
