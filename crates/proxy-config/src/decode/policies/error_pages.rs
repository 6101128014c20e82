//! The `error-pages` block of a listener and of a route.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use proxy_model::registry::policies::error_pages as spec;
use proxy_model::registry::{self, PageStatuses, Repeatable, Required, Spec, Text, Unset};
use proxy_model::{ErrorPage, ErrorPages, PageTemplate, Setting};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum size of a page, in bytes.
const MAX_PAGE_BYTES: u64 = 256 << 10;

/// The registry's rows of a listener or of a route.
pub(in crate::decode) struct Rows {
    block: &'static Spec<registry::Block, Unset>,
    page: &'static Spec<registry::Block, Repeatable>,
    status: &'static Spec<PageStatuses, Required>,
    file: &'static Spec<Text<PathBuf>, Unset>,
    html: &'static Spec<Text<String>, Unset>,
}

pub(in crate::decode) const LISTENER: Rows = Rows {
    block: &spec::LISTENER_ERROR_PAGES,
    page: &spec::LISTENER_ERROR_PAGE,
    status: &spec::LISTENER_PAGE_STATUS,
    file: &spec::LISTENER_PAGE_FILE,
    html: &spec::LISTENER_PAGE_HTML,
};

pub(in crate::decode) const ROUTE: Rows = Rows {
    block: &spec::ERROR_PAGES,
    page: &spec::ERROR_PAGE,
    status: &spec::PAGE_STATUS,
    file: &spec::PAGE_FILE,
    html: &spec::PAGE_HTML,
};

pub(in crate::decode) fn error_pages<'t>(
    d: &mut Decoder<'t, '_>,
    b: &Block<'t>,
    rows: &Rows,
) -> ErrorPages {
    let Some(b) = b.inner(d, rows.block) else {
        return Vec::new();
    };
    let mut pages: ErrorPages = Vec::new();
    for block in b.each(d, rows.page) {
        let page = page(d, &block, rows);
        block.close(d);
        let Some(page) = page else {
            continue;
        };
        let mut earlier = pages.iter();
        if let Some(first) = earlier.find(|one| *one.statuses == *page.statuses) {
            let message = format!("`{}` has a page already", *page.statuses);
            let fault = Diagnostic::new(DiagnosticCode::RepeatedValue, page.place, message);
            d.push(fault.label("again here").related(first.place, "first here"));
            continue;
        }
        pages.push(page);
    }
    b.close(d);
    pages
}

/// `page 404 file="FILE"` or `page "5xx" html="HTML"`.
fn page<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>, rows: &Rows) -> Option<ErrorPage> {
    let place = b.place(d);
    let statuses = b.argument_or_setting(d, rows.status);
    let is_meant = [rows.file.path, rows.html.path]
        .iter()
        .any(|path| b.has(path) || b.is_misread(path));
    let file = b.path(d, rows.file);
    let html = b.optional(d, rows.html);
    let text = match (&file, &html) {
        (Some(file), None) => read(d, file),
        (None, Some(html)) => Some(html.value.clone()),
        (Some(_), Some(html)) => {
            let message = "a page is in a `file` or in `html`, not in both";
            let place = html.place().unwrap_or(place);
            d.fault(DiagnosticCode::Conflict, place, message);
            None
        }
        (None, None) => {
            if !is_meant {
                let message = "the page has no text";
                let fault = Diagnostic::new(DiagnosticCode::MissingSetting, place, message);
                d.push(fault.help("write `page 404 file=\"errors/404.html\"`, or `html`"));
            }
            None
        }
    };
    Some(ErrorPage {
        place,
        statuses: statuses?,
        file,
        html,
        template: Arc::new(PageTemplate::parse(&text?)),
    })
}

/// The text of a page's file. Empty for a file outside of its bundle, which is reported separately.
fn read(d: &mut Decoder<'_, '_>, file: &Setting<PathBuf>) -> Option<String> {
    let path = &file.value;
    let read = d.read_present_file(path, MAX_PAGE_BYTES);
    let (code, message) = match read.map(|bytes| bytes.map(String::from_utf8)) {
        Ok(None) => return Some(String::new()),
        Ok(Some(Ok(text))) if text.is_empty() => {
            let message = format!("`{}` is empty", path.display());
            (DiagnosticCode::BadValue, message)
        }
        Ok(Some(Ok(text))) => return Some(text),
        Ok(Some(Err(_))) => {
            let message = format!("`{}` is not UTF-8", path.display());
            (DiagnosticCode::BadValue, message)
        }
        Err(error) => {
            let message = format!("`{}` cannot be read: {error}", path.display());
            (DiagnosticCode::MissingFile, message)
        }
    };
    d.fault(code, file.place()?, message);
    None
}
