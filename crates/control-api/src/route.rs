//! A row of the table of routes.

use axum::http::Method;
use control_app::App;
use control_domain::Access;
use control_http::RateClass;
use std::sync::Arc;
use utoipa_axum::router::UtoipaMethodRouter;

/// Prefix of the interface.
pub(crate) const PREFIX: &str = "/api/v1";
const DEFAULT_MAX_BODY_BYTES: usize = 1024 * 1024;

/// A row of the table. A handler is reachable only through its row, so its access rule always
/// applies.
#[derive(Debug)]
pub struct Route {
    /// HTTP method.
    pub method: Method,
    /// Path below `/api/v1`.
    pub path: &'static str,
    /// Permission that the route requires.
    pub access: Access,
    /// Rate limit class.
    pub rate: RateClass,
    /// Maximum size of the body, in bytes.
    pub max_body_bytes: usize,
    /// Path below `/api/v1` of the created resource, for `Location`; `None` if nothing is created.
    pub creates: Option<&'static str>,
    /// True if `If-Match` is compared with the resource's version; other writes refuse `If-Match`.
    pub is_versioned: bool,
    /// True if the response has an `ETag`.
    pub is_tagged: bool,
    /// True if the response may set or delete cookies.
    pub sets_cookies: bool,
    pub(crate) handler: fn() -> UtoipaMethodRouter<Arc<App>>,
}

/// A row with the general rate limit and the usual body size.
pub(crate) const fn row(
    method: Method,
    path: &'static str,
    access: Access,
    handler: fn() -> UtoipaMethodRouter<Arc<App>>,
) -> Route {
    Route {
        method,
        path,
        access,
        rate: RateClass::General,
        max_body_bytes: DEFAULT_MAX_BODY_BYTES,
        creates: None,
        is_versioned: false,
        is_tagged: false,
        sets_cookies: false,
        handler,
    }
}

impl Route {
    /// Message of a 404; its noun is that of the path's last parameter.
    pub(crate) fn missing(&self) -> String {
        let names = self.path.split('/').rev();
        let mut names =
            names.filter_map(|part| Some(noun(part.strip_prefix('{')?.strip_suffix('}')?)));
        match (names.next(), names.next()) {
            (Some(own), Some(outer)) => format!("no such {own} of this {outer}"),
            (Some(own), None) => format!("no such {own}"),
            // The body or the query names the organization or project.
            (None, _) => "no such organization or project".to_owned(),
        }
    }

    /// Sets the maximum size of the body.
    pub(crate) const fn with_body(mut self, max_bytes: usize) -> Self {
        self.max_body_bytes = max_bytes;
        self
    }

    /// The route creates a resource, which has this path.
    pub(crate) const fn creates(mut self, path: &'static str) -> Self {
        self.creates = Some(path);
        self
    }

    /// The route compares `If-Match` with the resource's version.
    pub(crate) const fn versioned(mut self) -> Self {
        self.is_versioned = true;
        self
    }

    /// The response has an `ETag`.
    pub(crate) const fn tagged(mut self) -> Self {
        self.is_tagged = true;
        self
    }

    /// The response may set or delete cookies.
    pub(crate) const fn with_cookies(mut self) -> Self {
        self.sets_cookies = true;
        self
    }

    /// Returns true if the response is a bundle's archive.
    pub(crate) fn is_archive(&self) -> bool {
        self.path.ends_with("/archive") || self.path.ends_with("/download")
    }

    /// Returns true if responses are stored for `Idempotency-Key`. A public write has no actor to
    /// store them for, links of set-ups and invitations work only once, and questions may be asked
    /// again.
    pub(crate) fn is_repeatable(&self) -> bool {
        let is_one_time = matches!(
            self.access,
            Access::Public | Access::SetUp | Access::Invitee
        );
        !is_one_time && !self.is_question() && !self.method.is_safe()
    }

    /// Returns true for a question that is too long for a query: it is sent by POST, and stores
    /// nothing.
    fn is_question(&self) -> bool {
        let questions = ["/preview", "/explain", "/replay"];
        questions.iter().any(|end| self.path.ends_with(end))
    }

    /// Returns true if the body is so large that few are accepted at once.
    pub(crate) fn is_upload(&self) -> bool {
        DEFAULT_MAX_BODY_BYTES < self.max_body_bytes
    }

    /// Uses the rate limit of certificates for nodes.
    pub(crate) const fn delivered(mut self) -> Self {
        self.rate = RateClass::Delivery;
        self
    }

    /// Uses the strict rate limit, for guessable secrets.
    pub(crate) const fn strict(mut self) -> Self {
        self.rate = RateClass::Strict;
        self
    }
}

/// Noun for the resource that a path parameter identifies.
pub(crate) fn noun(parameter: &str) -> &str {
    match parameter {
        "api_key" => "API key",
        "drift" => "drift event",
        "enrolment_token" => "enrolment token",
        "org" => "organization",
        "signing_key" => "signing key",
        "user" => "member",
        other => other,
    }
}
