//! A page that announces the effects of a command, and requires a confirmation.

use super::{Frame, show};
use crate::view::confirm::Confirm;
use askama::Template;
use axum::response::Response;

#[derive(Template)]
#[template(path = "confirm.html")]
struct ConfirmPage {
    frame: Frame,
    confirm: Confirm,
}

/// The page.
pub(crate) fn confirmation(frame: Frame, confirm: Confirm) -> Response {
    show(&ConfirmPage { frame, confirm })
}
