//! One row of the table of routes.

use axum::http::Method;
use control_app::App;
use control_domain::Access;
use control_http::RateClass;
use std::sync::Arc;
use utoipa_axum::router::UtoipaMethodRouter;

/// Prefix of the interface.
pub(crate) const PREFIX: &str = "/api/v1";
const BODY_BYTES: usize = 1024 * 1024;

/// One row. A handler is reached only through its row, and so only past its access rule.
#[derive(Debug)]
pub struct Route {
    /// The method.
    pub method: Method,
    /// The path below `/api/v1`.
    pub path: &'static str,
    /// The access rule.
    pub access: Access,
    /// Rate limit class.
    pub rate: RateClass,
    /// The largest body, in bytes.
    pub max_body_bytes: usize,
    /// The path below `/api/v1` of the created resource, for `Location`.
    pub creates: Option<&'static str>,
    /// True if `If-Match` is compared with the version of the resource. Other writes refuse it.
    pub is_versioned: bool,
    /// True if its answer is a resource with an `ETag`.
    pub is_tagged: bool,
    /// True if its answer may set or delete cookies.
    pub sets_cookies: bool,
    pub(crate) handler: fn() -> UtoipaMethodRouter<Arc<App>>,
}

/// A row with the general rate and the usual size of a body.
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
        max_body_bytes: BODY_BYTES,
        creates: None,
        is_versioned: false,
        is_tagged: false,
        sets_cookies: false,
        handler,
    }
}

impl Route {
    /// Noun of the message of a 404, from the last parameter of the path.
    pub(crate) fn missing(&self) -> String {
        let names = self.path.split('/').rev();
        let mut names =
            names.filter_map(|part| Some(noun(part.strip_prefix('{')?.strip_suffix('}')?)));
        match (names.next(), names.next()) {
            (Some(own), Some(outer)) => format!("no such {own} of this {outer}"),
            (Some(own), None) => format!("no such {own}"),
            // A field or a parameter names it.
            (None, _) => "no such organization or project".to_owned(),
        }
    }

    /// Sets another size of the largest body.
    pub(crate) const fn with_body(mut self, max_bytes: usize) -> Self {
        self.max_body_bytes = max_bytes;
        self
    }

    /// Creates a resource with a path of its own.
    pub(crate) const fn creates(mut self, path: &'static str) -> Self {
        self.creates = Some(path);
        self
    }

    /// Compares `If-Match` with the version of the resource.
    pub(crate) const fn versioned(mut self) -> Self {
        self.is_versioned = true;
        self
    }

    /// Answers with a resource that has an `ETag`.
    pub(crate) const fn tagged(mut self) -> Self {
        self.is_tagged = true;
        self
    }

    /// Sets or deletes cookies.
    pub(crate) const fn with_cookies(mut self) -> Self {
        self.sets_cookies = true;
        self
    }

    /// Returns true if its answer is the archive of a bundle.
    pub(crate) fn is_archive(&self) -> bool {
        self.path.ends_with("/archive") || self.path.ends_with("/download")
    }

    /// Returns true if answers are kept for `Idempotency-Key`. A public write has no actor to keep
    /// one for, and the links of a set-up and of an invitation work once.
    pub(crate) fn is_repeatable(&self) -> bool {
        let is_one_time = matches!(
            self.access,
            Access::Public | Access::SetUp | Access::Invitee
        );
        !is_one_time && !self.method.is_safe()
    }

    /// Returns true if its bodies are so large that only a few are accepted at once.
    pub(crate) fn is_upload(&self) -> bool {
        BODY_BYTES < self.max_body_bytes
    }

    /// Selects the lower rate, for secrets that can be guessed.
    pub(crate) const fn strict(mut self) -> Self {
        self.rate = RateClass::Strict;
        self
    }
}

/// Noun of a path parameter.
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
