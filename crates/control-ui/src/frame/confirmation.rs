//! Confirmation page: announces the effects of a command.

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

/// Renders a confirmation page.
pub(crate) fn confirmation(frame: Frame, confirm: Confirm) -> Response {
    show(&ConfirmPage { frame, confirm })
}
