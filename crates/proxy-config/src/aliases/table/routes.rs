//! Aliases in routes.

use super::row::{completed, group, implied, missing, moved};
use crate::aliases::alias::{Alias, Anchor};
use crate::aliases::convert;
use Anchor::Route;

/// The rows, in the order in which they are applied.
pub(super) const ROWS: &[Alias] = &[
    moved(
        Route,
        "builtin-handler",
        &[".builtin-handler"],
        convert::builtin_handler,
        "",
    ),
    completed(Route, "builtin-handler", "service-type", "builtin"),
    completed(Route, "static-files", "service-type", "static"),
    moved(
        Route,
        "service-type",
        &[".service-type"],
        convert::service_type,
        "",
    ),
    implied(
        Route,
        "policies.failure-mode",
        convert::failure_mode,
        "the `failure-mode` of each agent holds, and says the same",
    ),
    moved(
        Route,
        "retry-policy.max-attempts",
        &["policies.retry.attempts"],
        convert::max_attempts,
        "the first attempt is not counted",
    ),
    moved(
        Route,
        "retry-policy.retryable-status-codes",
        &["policies.retry.on"],
        convert::retry_statuses,
        "requests with a body and methods that are not idempotent are never sent again after a status",
    ),
    implied(
        Route,
        "retry-policy.backoff|backoff-base-ms|backoff-max-ms|backoff-multiplier|max-backoff",
        convert::implied,
        "a retry goes to another target at once; `budget-percent` bounds how many there are",
    ),
    implied(
        Route,
        "retry-policy.retry-non-idempotent",
        convert::false_only,
        "such methods are never sent again",
    ),
    missing(
        Route,
        "retry-policy.timeout-ms",
        "leave it out: `timeouts { request-secs }` bounds a request with all its attempts",
    ),
    moved(
        Route,
        "retry-policy.per-attempt-timeout",
        &["policies.timeouts.connect-ms"],
        convert::milliseconds,
        "",
    ),
    group(
        Route,
        "retry-policy",
        "retries are `policies { retry { … } }`",
    ),
    moved(
        Route,
        "policies.rewrite-path",
        &[".rewrite.path"],
        convert::same,
        "",
    ),
    implied(
        Route,
        "websocket",
        convert::websocket,
        "upgrades pass on every route",
    ),
    implied(
        Route,
        "websocket.enabled",
        convert::true_only,
        "upgrades pass on every route",
    ),
    missing(
        Route,
        "websocket.ping-interval-secs|ping-timeout-secs",
        "leave it out: pings pass; `timeouts { idle-secs }` ends a connection without a byte",
    ),
    missing(
        Route,
        "websocket.max-message-size|max-message-size-bytes|max-frame-size",
        "leave it out: messages are passed on unchanged",
    ),
    group(Route, "websocket", "upgrades pass on every route"),
    implied(
        Route,
        "websocket-inspection",
        convert::false_only,
        "messages of a WebSocket are not inspected",
    ),
    implied(
        Route,
        "waf-enabled",
        convert::waf_enabled,
        "a WAF is an agent",
    ),
    moved(
        Route,
        "shadow.percentage",
        &[".percent"],
        convert::percent,
        "",
    ),
    implied(
        Route,
        "shadow.buffer-body",
        convert::true_only,
        "a copy is sent when the body has been read",
    ),
    missing(
        Route,
        "shadow.timeout-ms",
        "leave it out: the `timeouts` of the shadow's upstream bound its copies",
    ),
    missing(
        Route,
        "shadow.sample-header",
        "write a route with `matches { header }` and the `shadow`",
    ),
    missing(
        Route,
        "shadow.max-body-bytes",
        "leave it out: `limits { max-body-buffer-bytes }` bounds the bodies of copies",
    ),
    moved(
        Route,
        "static-files.compress",
        &["policies.compression"],
        convert::compress,
        "Brotli, Zstandard and gzip, as the client prefers",
    ),
    moved(
        Route,
        "static-files.cache-control",
        &["policies.response-headers.set"],
        convert::cache_control,
        "",
    ),
    implied(
        Route,
        "static-files.directory-listing",
        convert::false_only,
        "folders are never listed",
    ),
    missing(
        Route,
        "static-files.mime-types",
        "leave it out: types are those of the files' names",
    ),
    missing(
        Route,
        "policies.request-headers.rename",
        "write `remove` of the old name, and `set` of the new one with its value",
    ),
    missing(
        Route,
        "policies.response-headers.rename",
        "write `remove` of the old name, and `set` of the new one with its value",
    ),
    missing(
        Route,
        "inference",
        "leave it out, or run it as an agent: prompts and tokens are not counted",
    ),
    missing(
        Route,
        "api-schema",
        "run it as an agent that gets the bodies of requests",
    ),
    missing(
        Route,
        "fallback",
        "write `outlier-detection` and further targets in the upstream",
    ),
];
