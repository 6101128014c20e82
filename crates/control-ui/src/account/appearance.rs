//! The browser's theme, chosen in the menu of every page.

use crate::request::fields::Fields;
use crate::request::note::Note;
use crate::request::path::is_own_path;
use crate::request::theme::{COOKIE, Theme};
use crate::ui::Ui;
use axum::extract::State;
use axum::http::header;
use axum::response::Response;
use std::sync::Arc;

/// Lifetime of the cookie: a year.
const COOKIE_SECONDS: u32 = 365 * 24 * 3_600;

/// Stores the choice in a cookie, and redirects back to the page.
pub(crate) async fn choose(State(ui): State<Arc<Ui>>, fields: Fields) -> Response {
    let theme = Theme::from_name(fields.get("theme"));
    let (value, seconds, text) = match theme {
        Some(theme) => (theme.name(), COOKIE_SECONDS, theme.name()),
        None => ("", 0, "as your system says"),
    };
    let back = fields.get("return");
    let back = if is_own_path(back) { back } else { "/" };
    let mut response = Note::good(format!("Pages are {text} in this browser.")).at(back, ui.cookie);
    if let Ok(field) = ui.cookie.field(COOKIE, value, Some(seconds)) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    response
}
