//! A row of the table of pages.

use crate::ui::Ui;
use axum::http::Method;
use axum::routing::MethodRouter;
use control_domain::Access;
use control_http::RateClass;
use std::sync::Arc;

/// Maximum size of a form without a configuration's text.
const FORM_BYTES: usize = 64 * 1024;

/// A row of the table. A handler is reachable only through its row, so its access rule always
/// applies.
#[derive(Debug)]
pub struct Page {
    /// GET shows a page; POST submits its form.
    pub method: Method,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Permission that the page requires.
    pub access: Access,
    /// Rate limit class.
    pub rate: RateClass,
    /// Maximum size of the form, in bytes.
    pub max_form_bytes: usize,
    /// Fields of the form besides the CSRF token, each at most once. Other fields are refused.
    pub fields: &'static [&'static str],
    /// Name of checkboxes, the only field that may occur several times.
    pub boxes: Option<&'static str>,
    pub(crate) handler: fn() -> MethodRouter<Arc<Ui>>,
}

pub(crate) const fn page(
    path: &'static str,
    access: Access,
    handler: fn() -> MethodRouter<Arc<Ui>>,
) -> Page {
    Page {
        method: Method::GET,
        path,
        access,
        rate: RateClass::Pages,
        max_form_bytes: 0,
        fields: &[],
        boxes: None,
        handler,
    }
}

/// A row for a form.
pub(crate) const fn form(
    path: &'static str,
    access: Access,
    handler: fn() -> MethodRouter<Arc<Ui>>,
) -> Page {
    Page {
        method: Method::POST,
        path,
        access,
        rate: RateClass::Pages,
        max_form_bytes: FORM_BYTES,
        fields: &[],
        boxes: None,
        handler,
    }
}

impl Page {
    /// Uses the strict rate limit, for guessable secrets.
    pub(crate) const fn strict(mut self) -> Self {
        self.rate = RateClass::Strict;
        self
    }

    /// Sets the fields of the form.
    pub(crate) const fn fields(mut self, names: &'static [&'static str]) -> Self {
        self.fields = names;
        self
    }

    /// Sets the name of checkboxes.
    pub(crate) const fn boxes(mut self, name: &'static str) -> Self {
        self.boxes = Some(name);
        self
    }

    /// Sets the maximum size of the form.
    pub(crate) const fn with_form(mut self, max_bytes: usize) -> Self {
        self.max_form_bytes = max_bytes;
        self
    }

    /// Returns true if the credential is a secret in the link instead of a session.
    pub(crate) fn is_linked(&self) -> bool {
        matches!(self.access, Access::SetUp | Access::Invitee)
    }
}
