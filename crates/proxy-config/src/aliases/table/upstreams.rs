//! Aliases in upstreams and agents.

use super::row::{implied, missing, moved};
use crate::aliases::alias::{Alias, Anchor};
use crate::aliases::convert;
use Anchor::{Agent, Upstream};

/// The rows, in the order in which they are applied.
pub(super) const ROWS: &[Alias] = &[
    moved(
        Upstream,
        "load-balancing",
        &[".load-balancing"],
        convert::load_balancing,
        "",
    ),
    moved(
        Upstream,
        "timeouts.connect",
        &[".connect-secs"],
        convert::seconds,
        "",
    ),
    moved(
        Upstream,
        "timeouts.request",
        &[".request-secs"],
        convert::seconds,
        "",
    ),
    implied(
        Upstream,
        "timeouts.write-secs|write",
        convert::write_secs,
        "`read-secs` bounds the time between two writes as well",
    ),
    moved(
        Upstream,
        "timeouts.read",
        &[".read-secs"],
        convert::seconds,
        "",
    ),
    moved(
        Upstream,
        "connection-pool.idle-timeout",
        &[".idle-timeout-secs"],
        convert::seconds,
        "",
    ),
    moved(
        Upstream,
        "connection-pool.max-lifetime",
        &[".max-lifetime-secs"],
        convert::seconds,
        "",
    ),
    moved(
        Upstream,
        "connection-pool.max-idle-connections",
        &[".max-idle"],
        convert::same,
        "",
    ),
    moved(
        Upstream,
        "tls.client-cert",
        &[".cert-file"],
        convert::same,
        "",
    ),
    moved(
        Upstream,
        "tls.client-key",
        &[".key-file"],
        convert::same,
        "",
    ),
    moved(Upstream, "tls.ca-cert", &[".ca-file"], convert::same, ""),
    implied(
        Upstream,
        "tls.insecure-skip-verify",
        convert::skip_verify,
        "certificates are verified",
    ),
    moved(Upstream, "tls.verify-peer", &[".verify"], convert::same, ""),
    implied(
        Upstream,
        "tls.enabled",
        convert::true_only,
        "the block itself states this",
    ),
    missing(
        Upstream,
        "discovery",
        "write a target by its DNS name: each of its addresses is a target, and SRV records have ports and \
         weights",
    ),
    missing(
        Upstream,
        "http-version",
        "write `protocol \"h2\"` for HTTP/2; HTTP/1.1 is the default",
    ),
    implied(
        Agent,
        "type",
        convert::implied,
        "an agent says itself what it takes part in",
    ),
    missing(
        Agent,
        "grpc",
        "run it on this machine, and write `unix-socket \"/run/agent.sock\"`; `protocol \"ext-authz\"` speaks \
         gRPC over it",
    ),
    missing(
        Agent,
        "config",
        "leave it out: an agent reads a configuration of its own",
    ),
    missing(
        Agent,
        "max-request-body-bytes",
        "leave it out: `limits { max-agent-body-bytes }` holds for all agents",
    ),
    implied(
        Agent,
        "circuit-breaker.success-threshold|half-open-max-requests",
        convert::single_success,
        "one trial request decides",
    ),
];
