//! The second factor: a QR code for the authenticator app, and recovery codes, each shown once.

use crate::account::profile::with_session;
use crate::frame::confirmation::confirmation;
use crate::frame::form::{Faults, Form};
use crate::frame::{Frame, NavEntry, show as shown, unprocessable};
use crate::request::failure::Failure;
use crate::request::fields::Fields;
use crate::request::note::{Note, redirect};
use crate::request::path::with_return_path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::confirm::Confirm;
use crate::view::link::Link;
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_auth::RecoveryCode;
use std::sync::Arc;

#[derive(Template)]
#[template(path = "totp_start.html")]
struct StartPage {
    frame: Frame,
}

#[derive(Template)]
#[template(path = "totp.html")]
struct TotpPage {
    frame: Frame,
    form: Form,
    /// QR code as SVG, generated from numbers and fixed text only; empty once the secret was shown.
    qr: String,
    secret: String,
}

#[derive(Template)]
#[template(path = "recovery_codes.html")]
struct CodesPage {
    frame: Frame,
    heading: &'static str,
    codes: Vec<String>,
}

/// Shows how to set up the second factor, or asks for its code if the user has one.
pub(crate) async fn show(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    if ui.app.second_factor(&caller.call).await?.is_some() {
        let back = caller.visit.query.get("return");
        return Ok(redirect(&with_return_path("/profile/prove", back)));
    }
    let frame = Frame::personal(&ui, &caller, NavEntry::Profile.titled("Second factor")).await?;
    Ok(shown(&StartPage { frame }))
}

/// Creates a secret, and shows it once.
pub(crate) async fn start(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let made = ui.app.start_totp(&caller.call).await?;
    let form = Form::new(&caller.visit.csrf, Fields::default());
    respond(&ui, &caller, form, made.qr_svg, grouped(&made.base32)).await
}

/// Activates the second factor if the code is correct.
pub(crate) async fn confirm(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    fields: Fields,
) -> Result<Response, Failure> {
    let code = fields.get("code").trim().to_owned();
    let faults = match ui.app.confirm_totp(&caller.call, &code).await {
        Ok(factor) => {
            let heading = "The second factor is on.";
            let caller = caller.renewed(&factor.session);
            let page = codes_page(&ui, &caller, heading, &factor.recovery_codes).await?;
            return Ok(with_session(&ui, &factor.session, page));
        }
        Err(error) => Faults::from_error(error)?,
    };
    let form = Form::refused(&caller.visit.csrf, fields, faults);
    respond(&ui, &caller, form, String::new(), String::new())
        .await
        .map(unprocessable)
}

async fn respond(
    ui: &Ui,
    caller: &Caller,
    form: Form,
    qr: String,
    secret: String,
) -> Result<Response, Failure> {
    Ok(shown(&TotpPage {
        frame: Frame::personal(ui, caller, NavEntry::Profile.titled("Second factor")).await?,
        form,
        qr,
        secret,
    }))
}

/// Groups characters, such as `ABCD EFGH …`.
fn grouped(secret: &str) -> String {
    let mut text = String::new();
    for (index, letter) in secret.chars().enumerate() {
        if 0 < index && index.is_multiple_of(4) {
            text.push(' ');
        }
        text.push(letter);
    }
    text
}

/// Creates new recovery codes, and shows them once.
pub(crate) async fn renew_codes(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
) -> Result<Response, Failure> {
    let codes = ui.app.renew_recovery_codes(&caller.call).await?;
    codes_page(&ui, &caller, "You have new recovery codes.", &codes).await
}

async fn codes_page(
    ui: &Ui,
    caller: &Caller,
    heading: &'static str,
    codes: &[RecoveryCode],
) -> Result<Response, Failure> {
    Ok(shown(&CodesPage {
        frame: Frame::personal(ui, caller, NavEntry::Profile.titled("Recovery codes")).await?,
        heading,
        codes: codes.iter().map(|code| code.reveal().to_owned()).collect(),
    }))
}

/// The confirmation page of removing the second factor.
pub(crate) async fn ask_removal(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
) -> Result<Response, Failure> {
    let frame = Frame::personal(&ui, &caller, NavEntry::Profile.titled("Second factor")).await?;
    Ok(confirmation(frame, Confirm {
            over: Link {
                text: "Profile".to_owned(),
                path: "/profile".to_owned(),
            },
            heading: "Turn the second factor off?".to_owned(),
            effects: vec![
                "Your password alone signs in from now on, and your recovery codes end.".to_owned(),
                "If an organization requires a second factor, you have no access to it until you set up another one.".to_owned(),
            ],
            action: "/profile/totp/remove".to_owned(),
            back: "/profile".to_owned(),
            csrf: caller.visit.csrf.clone(),
            button: "Turn it off".to_owned(),
        }))
}

/// Ends the second factor.
pub(crate) async fn remove(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let note = match ui.app.remove_totp(&caller.call).await {
        Ok(()) => Note::good("The second factor is off."),
        Err(error) => Faults::from_error(error)?.note(),
    };
    Ok(note.at("/profile", ui.cookie))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_read_in_groups_of_four() {
        assert_eq!(grouped("ABCDEFGHIJ"), "ABCD EFGH IJ");
    }
}
