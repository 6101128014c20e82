//! Aliases at the top of a file.

use super::row::{group, implied, missing, moved, spread};
use crate::aliases::alias::{Alias, Anchor};
use crate::aliases::convert;
use Anchor::Top;

/// The rows, in the order in which they are applied.
pub(super) const ROWS: &[Alias] = &[
    moved(
        Top,
        "schema-version",
        &[".schema-version"],
        convert::schema_version,
        "",
    ),
    moved(
        Top,
        "system|server.max-connections",
        &["limits.max-total-connections"],
        convert::same,
        "",
    ),
    moved(
        Top,
        "system|server.workers",
        &[".worker-threads"],
        convert::same,
        "",
    ),
    moved(
        Top,
        "system|server.graceful-shutdown-timeout",
        &[".graceful-shutdown-timeout-secs"],
        convert::seconds,
        "",
    ),
    implied(
        Top,
        "system|server.daemon",
        convert::daemon,
        "the process stays in the foreground",
    ),
    implied(
        Top,
        "system|server.auto-reload",
        convert::auto_reload,
        "a reload is asked for by SIGHUP",
    ),
    missing(
        Top,
        "system|server.pid-file",
        "leave it out: no such file is written; the service manager knows the process, and `kill -HUP \
         $MAINPID` in its unit reloads it",
    ),
    missing(
        Top,
        "system|server.user",
        "leave it out: start the process as that user, as the packaged unit of systemd does",
    ),
    missing(
        Top,
        "system|server.group",
        "leave it out: start the process with that group, as the packaged unit of systemd does",
    ),
    missing(
        Top,
        "system|server.working-directory",
        "leave it out: files are relative to the folder of the configuration file",
    ),
    missing(
        Top,
        "system|server.trace-id-format",
        "leave it out: correlation IDs have one form, and traces that of W3C",
    ),
    missing(
        Top,
        "system|server.route-cache-size",
        "leave it out: routes are found without a cache",
    ),
    // Metrics, logs and traces.
    implied(
        Top,
        "observability.metrics.enabled",
        convert::metrics_enabled,
        "the admin interface has them",
    ),
    moved(
        Top,
        "observability.metrics.address",
        &["admin.address"],
        convert::metrics_address,
        "the admin interface has the metrics, on loopback only: to reach it from elsewhere, write `admin` \
         with the address and a `token-file`",
    ),
    implied(
        Top,
        "observability.metrics.path",
        convert::metrics_path,
        "the admin interface has `/metrics`",
    ),
    implied(
        Top,
        "observability.metrics.high-cardinality",
        convert::high_cardinality,
        "",
    ),
    group(
        Top,
        "observability.metrics",
        "the admin interface has the metrics",
    ),
    moved(
        Top,
        "observability.logging.error-log.level",
        &["observability.error-log.level"],
        convert::error_level,
        "",
    ),
    moved(
        Top,
        "observability.logging.error-log.file",
        &["observability.error-log.path"],
        convert::same,
        "",
    ),
    implied(
        Top,
        "observability.logging.error-log.enabled",
        convert::implied,
        "there is one error log; `error-log { path }` is its file",
    ),
    group(Top, "observability.logging.error-log", ""),
    moved(
        Top,
        "observability.logging.access-log.enabled",
        &["observability.access-log.enabled"],
        convert::flag,
        "",
    ),
    moved(
        Top,
        "observability.logging.access-log.file",
        &["observability.access-log.path"],
        convert::same,
        "",
    ),
    moved(
        Top,
        "observability.logging.access-log.format",
        &["observability.access-log.format"],
        convert::same,
        "",
    ),
    implied(
        Top,
        "observability.logging.access-log.include-trace-id",
        convert::true_only,
        "records have `correlation_id`, and `trace_id` of a request with trace context",
    ),
    missing(
        Top,
        "observability.logging.access-log.fields",
        "leave it out: every record has all fields, in JSON or as `format \"combined\"`",
    ),
    missing(
        Top,
        "observability.logging.access-log.buffer-size",
        "leave it out: `buffer-lines` is the number of lines that may wait for a slow disk",
    ),
    group(Top, "observability.logging.access-log", ""),
    moved(
        Top,
        "observability.logging.level",
        &["observability.error-log.level"],
        convert::same,
        "",
    ),
    moved(
        Top,
        "observability.logging.file",
        &["observability.error-log.path"],
        convert::same,
        "",
    ),
    implied(
        Top,
        "observability.logging.format",
        convert::log_format,
        "records of the error log are JSON",
    ),
    implied(
        Top,
        "observability.logging.timestamps",
        convert::true_only,
        "every record has a timestamp",
    ),
    missing(
        Top,
        "observability.logging.audit-log",
        "leave it out: refused requests are in the access log, with `reason`",
    ),
    group(
        Top,
        "observability.logging",
        "the logs are `access-log` and `error-log`",
    ),
    implied(
        Top,
        "observability.tracing",
        convert::tracing,
        "spans are exported by `otlp`",
    ),
    // Filters.
    spread(
        Top,
        "filters",
        "`agents` and `policies` of the routes that name them",
        "a filter of the type `rate-limit`, `agent`, `compress`, `cors`, `headers` or `timeout`",
    ),
    spread(
        Anchor::Route,
        "filters",
        "`agents` and `policies` of the route",
        "as the filters say that it names",
    ),
    // Blocks of other features.
    missing(
        Top,
        "waf",
        "run a WAF as an agent: `agents { agent \"waf\" { … } }`, and name it in routes",
    ),
    missing(
        Top,
        "namespace|namespaces",
        "write its listeners, routes and upstreams without it",
    ),
    missing(Top, "metadata", "leave it out, or write a comment"),
];
