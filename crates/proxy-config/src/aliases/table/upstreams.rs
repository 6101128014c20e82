//! Aliases in upstreams and agents.

use super::row::{implied, missing, moved};
use crate::aliases::alias::{Alias, Anchor};
use crate::aliases::convert as as_;
use Anchor::{Agent, Upstream};

/// The rows, in the order in which they are applied.
pub(super) const ROWS: &[Alias] = &[
    moved(
        Upstream,
        "load-balancing",
        &[".load-balancing"],
        as_::load_balancing,
        "",
    ),
    moved(
        Upstream,
        "timeouts.connect",
        &[".connect-secs"],
        as_::seconds,
        "",
    ),
    moved(
        Upstream,
        "timeouts.request",
        &[".request-secs"],
        as_::seconds,
        "",
    ),
    implied(
        Upstream,
        "timeouts.write-secs|write",
        as_::write_secs,
        "`read-secs` bounds the time between two writes as well",
    ),
    moved(Upstream, "timeouts.read", &[".read-secs"], as_::seconds, ""),
    moved(
        Upstream,
        "connection-pool.idle-timeout",
        &[".idle-timeout-secs"],
        as_::seconds,
        "",
    ),
    moved(
        Upstream,
        "connection-pool.max-lifetime",
        &[".max-lifetime-secs"],
        as_::seconds,
        "",
    ),
    moved(
        Upstream,
        "connection-pool.max-idle-connections",
        &[".max-idle"],
        as_::same,
        "",
    ),
    moved(Upstream, "tls.client-cert", &[".cert-file"], as_::same, ""),
    moved(Upstream, "tls.client-key", &[".key-file"], as_::same, ""),
    moved(Upstream, "tls.ca-cert", &[".ca-file"], as_::same, ""),
    implied(
        Upstream,
        "tls.insecure-skip-verify",
        as_::skip_verify,
        "certificates are verified",
    ),
    moved(Upstream, "tls.verify-peer", &[".verify"], as_::same, ""),
    implied(
        Upstream,
        "tls.enabled",
        as_::true_only,
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
        as_::implied,
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
        as_::one,
        "one trial request decides",
    ),
];
