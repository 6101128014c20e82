//! The browser's theme: light, dark, or the system's.

use axum::http::HeaderMap;
use control_http::{SessionCookie, cookie};

pub(crate) const COOKIE: &str = "theme";

/// A theme selected by the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

impl Theme {
    /// Name in attribute, cookie and form.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// The theme of this name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        [Self::Light, Self::Dark]
            .into_iter()
            .find(|theme| theme.name() == name)
    }

    /// The theme in the browser's cookie.
    pub(crate) fn from_request(headers: &HeaderMap, cookies: SessionCookie) -> Option<Self> {
        Self::from_name(cookie(headers, &cookies.named(COOKIE))?)
    }
}
