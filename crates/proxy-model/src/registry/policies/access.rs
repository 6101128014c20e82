//! Networks of clients, of a listener and of a route.

use crate::registry::listeners::network;
use crate::registry::spec::{Repeatable, Required, Spec};
use crate::registry::table::{file, settings, text};
use crate::registry::text::Text;
use ipnet::IpNet;
use std::path::PathBuf;

const ROUTE: &[&str] = &["routes.route"];
const BY: &str = "proxy-server";

const fn networks(path: &'static str) -> Spec<Text<IpNet>, Required> {
    text(path, "a network", "10.0.0.0/8", network)
}

const fn network_file(path: &'static str) -> Spec<Text<PathBuf>, Required> {
    file(path, "a file of networks", "office.txt")
}

settings! {
    /// Networks of admitted clients; requests of other clients are answered 403, reason
    /// `access_denied`. The client's address is the one used by limits and logs: behind
    /// `trusted-proxies` the one in `X-Forwarded-For`.
    LISTENER_ALLOW: Text<IpNet>, Repeatable = networks("listeners.listener.allow")
        .many()
        .enforced(BY, "a_listener_takes_requests_of_its_networks_only");
    /// Files with such networks: one a line, `#` begins a comment. They are read at start and at each
    /// reload.
    LISTENER_ALLOW_FILE: Text<PathBuf>, Repeatable = network_file("listeners.listener.allow-file")
        .many()
        .enforced(BY, "a_reload_reads_files_of_networks_again");
    /// Networks of the clients that are answered 403, even if `allow` has them.
    LISTENER_DENY: Text<IpNet>, Repeatable = networks("listeners.listener.deny")
        .many()
        .enforced(BY, "a_listener_takes_requests_of_its_networks_only");
    /// Files with such networks, as `allow-file`.
    LISTENER_DENY_FILE: Text<PathBuf>, Repeatable = network_file("listeners.listener.deny-file")
        .many()
        .enforced(BY, "a_reload_reads_files_of_networks_again");
    /// Networks of clients admitted by the route, as `allow` of a listener. A request must be
    /// admitted by both. A refused request is not matched to another route.
    ALLOW: Text<IpNet>, Repeatable = networks("routes.route.policies.allow")
        .many()
        .also(ROUTE)
        .enforced(BY, "a_route_takes_requests_of_its_networks_only");
    /// Files with such networks, as `allow-file` of a listener.
    ALLOW_FILE: Text<PathBuf>, Repeatable = network_file("routes.route.policies.allow-file")
        .many()
        .also(ROUTE)
        .enforced(BY, "a_reload_reads_files_of_networks_again");
    /// Networks of the clients that are answered 403, even if `allow` has them.
    DENY: Text<IpNet>, Repeatable = networks("routes.route.policies.deny")
        .many()
        .also(ROUTE)
        .enforced(BY, "a_route_takes_requests_of_its_networks_only");
    /// Files with such networks, as `allow-file` of a listener.
    DENY_FILE: Text<PathBuf>, Repeatable = network_file("routes.route.policies.deny-file")
        .many()
        .also(ROUTE)
        .enforced(BY, "a_reload_reads_files_of_networks_again");
}
