//! HTML pages of errors, of a listener and of a route.

use crate::registry::kind::Block;
use crate::registry::spec::{Repeatable, Required, Spec, Unset};
use crate::registry::table::{block, file, named, page_statuses, settings, text};
use crate::registry::text::{PageStatuses, Text};
use std::path::PathBuf;

const BY: &str = "proxy-server";
const OF_LISTENER: &str = "a_listener_has_pages_for_requests_without_a_route";
const OF_ROUTE: &str = "a_route_has_pages_for_its_errors";

const fn html(path: &'static str) -> Spec<Text<String>, Required> {
    text(
        path,
        "an HTML page",
        "<h1>{status_text}</h1>",
        |text| match text {
            "" => Err("it is empty".to_owned()),
            text => Ok(text.to_owned()),
        },
    )
}

settings! {
    /// HTML pages for errors of the proxy itself, by status, for requests without a route or with one that has no
    /// page for the status. Clients get a page where they would get the proxy's own HTML: from routes with
    /// `service-type "web"`, and where `Accept` prefers HTML. JSON and gRPC stay. Errors that an upstream sends are
    /// passed on.
    LISTENER_ERROR_PAGES: Block, Unset = block("listeners.listener.error-pages")
        .optional("the proxy's own pages")
        .enforced(BY, OF_LISTENER);
    /// A page: `page 404 file="errors/404.html"`, or `page "5xx" html="…"`. A page for a status comes before one
    /// for its class. Values are escaped: `{status}`, `{status_text}`, `{message}`, `{request_id}` and `{retry_after}`.
    /// The request's ID, and the seconds to wait where there are some, are appended to a page without a place for them.
    LISTENER_ERROR_PAGE: Block, Repeatable = named("listeners.listener.error-pages.page", "its statuses")
        .many()
        .enforced(BY, OF_LISTENER);
    /// The page's statuses: one from 400 to 599, `4xx` or `5xx`. May be written as the block's argument.
    LISTENER_PAGE_STATUS: PageStatuses, Required =
        page_statuses("listeners.listener.error-pages.page.status")
            .enforced(BY, OF_LISTENER);
    /// File with the page, UTF-8, at most 256 KiB. It is read at start and at each reload.
    LISTENER_PAGE_FILE: Text<PathBuf>, Unset =
        file("listeners.listener.error-pages.page.file", "an HTML file", "errors/404.html")
            .optional("the page is in `html`")
            .enforced(BY, OF_LISTENER);
    /// The page itself.
    LISTENER_PAGE_HTML: Text<String>, Unset = html("listeners.listener.error-pages.page.html")
        .optional("the page is in `file`")
        .enforced(BY, OF_LISTENER);
    /// HTML pages for errors of the proxy itself to requests of the route, by status; before those of the listener.
    ERROR_PAGES: Block, Unset = block("routes.route.policies.error-pages")
        .optional("those of the listener")
        .also(&["routes.route"])
        .enforced(BY, OF_ROUTE);
    /// A page, as `page` of a listener.
    ERROR_PAGE: Block, Repeatable = named("routes.route.policies.error-pages.page", "its statuses")
        .many()
        .enforced(BY, OF_ROUTE);
    /// The page's statuses: one from 400 to 599, `4xx` or `5xx`. May be written as the block's argument.
    PAGE_STATUS: PageStatuses, Required =
        page_statuses("routes.route.policies.error-pages.page.status").enforced(BY, OF_ROUTE);
    /// File with the page, UTF-8, at most 256 KiB. It is read at start and at each reload.
    PAGE_FILE: Text<PathBuf>, Unset =
        file("routes.route.policies.error-pages.page.file", "an HTML file", "errors/404.html")
            .optional("the page is in `html`")
            .enforced(BY, OF_ROUTE);
    /// The page itself.
    PAGE_HTML: Text<String>, Unset = html("routes.route.policies.error-pages.page.html")
        .optional("the page is in `file`")
        .enforced(BY, OF_ROUTE);
}
