//! Aliases in listeners.

use super::row::{completed, implied, missing, moved};
use crate::aliases::alias::{Alias, Anchor};
use crate::aliases::convert;
use Anchor::Listener;

/// The rows, in the order in which they are applied.
pub(super) const ROWS: &[Alias] = &[
    moved(
        Listener,
        "request-timeout-secs",
        &[".timeouts.header-secs", ".timeouts.body-idle-secs"],
        convert::same,
        "the head of a request has this time, and a body may pause for it",
    ),
    moved(
        Listener,
        "keepalive-timeout-secs",
        &[".timeouts.keep-alive-secs"],
        convert::same,
        "",
    ),
    moved(
        Listener,
        "keepalive-max-requests",
        &[".max-requests-per-connection"],
        convert::same,
        "",
    ),
    moved(
        Listener,
        "protocol",
        &[".protocol"],
        convert::listener_protocol,
        "ALPN agrees on HTTP/2 or HTTP/1.1",
    ),
    completed(Listener, "tls", "protocol", "https"),
    moved(
        Listener,
        "tls.cert-path|cert",
        &[".cert-file"],
        convert::same,
        "",
    ),
    moved(
        Listener,
        "tls.key-path|key",
        &[".key-file"],
        convert::same,
        "",
    ),
    moved(
        Listener,
        "tls.min-version",
        &[".min-version"],
        convert::tls_version,
        "",
    ),
    moved(
        Listener,
        "tls.max-version",
        &[".max-version"],
        convert::tls_version,
        "",
    ),
    moved(
        Listener,
        "tls.client-auth",
        &[".client-auth"],
        convert::client_auth,
        "",
    ),
    implied(
        Listener,
        "tls.session-resumption",
        convert::true_only,
        "sessions are resumed",
    ),
    implied(
        Listener,
        "tls.ocsp-stapling",
        convert::ocsp_stapling,
        "nothing is stapled without `ocsp-file`",
    ),
    missing(
        Listener,
        "tls.cipher-suites|cipher-suite|ciphers",
        "leave it out: the suites are fixed, all with forward secrecy and authenticated encryption",
    ),
    missing(
        Listener,
        "namespace",
        "leave it out: listeners have no namespaces",
    ),
    missing(
        Listener,
        "redirect-https",
        "write a route of this listener with `redirect \"https\"`: `listeners \"http\"` binds it",
    ),
];
