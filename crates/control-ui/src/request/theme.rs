//! The theme of a browser: light, dark, or the system's.

use axum::http::HeaderMap;
use control_http::{SessionCookie, cookie};

pub(crate) const COOKIE: &str = "theme";

/// A theme that was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Theme {
    Light,
    Dark,
}

impl Theme {
    /// The value of the attribute, of the cookie and of the form.
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

    /// The theme that this browser chose.
    pub(crate) fn from_request(headers: &HeaderMap, cookies: SessionCookie) -> Option<Self> {
        Self::from_name(cookie(headers, &cookies.named(COOKIE))?)
    }
}
