//! One row of the table of pages.

use crate::ui::Ui;
use axum::http::Method;
use axum::routing::MethodRouter;
use control_domain::Access;
use control_http::RateClass;
use std::sync::Arc;

/// The largest form without the text of a configuration.
const FORM_BYTES: usize = 64 * 1024;

/// One row. A handler is reached only through its row, and so only past its access rule.
#[derive(Debug)]
pub struct Page {
    /// The method: GET shows a page, POST takes its form.
    pub method: Method,
    /// Path, with parameters in braces.
    pub path: &'static str,
    /// Access that the handler requires.
    pub access: Access,
    /// The bucket that a request takes a token from.
    pub rate: RateClass,
    /// The largest form, in bytes.
    pub max_form_bytes: usize,
    /// Fields of the form besides its token. Each is sent once at most; other fields are refused.
    pub fields: &'static [&'static str],
    /// The field of the form that may be sent several times: boxes of one name.
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

/// The form of a page.
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
    /// Applies the lower rate limit, for secrets that are worth guessing.
    pub(crate) const fn strict(mut self) -> Self {
        self.rate = RateClass::Strict;
        self
    }

    /// A form with these fields.
    pub(crate) const fn fields(mut self, names: &'static [&'static str]) -> Self {
        self.fields = names;
        self
    }

    /// A form with boxes of this name, of which several may be ticked.
    pub(crate) const fn boxes(mut self, name: &'static str) -> Self {
        self.boxes = Some(name);
        self
    }

    /// Sets another size of the largest form.
    pub(crate) const fn with_form(mut self, max_bytes: usize) -> Self {
        self.max_form_bytes = max_bytes;
        self
    }

    /// Returns true if a secret in the link is the credential, not a session.
    pub(crate) fn is_linked(&self) -> bool {
        matches!(self.access, Access::SetUp | Access::Invitee)
    }
}
