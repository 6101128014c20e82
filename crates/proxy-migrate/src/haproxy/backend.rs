//! Converts backends to upstreams.

use super::advice::advice;
use super::checks;
use super::condition::{self, Condition};
use super::headers;
use super::parser::{Line, Section};
use super::rule;
use crate::kdl::Node;
use crate::site::{Policies, Service, Site, Upstream};
use crate::units;

/// Settings of a backend that apply to the routes to it.
pub(super) struct Backend {
    pub(super) policies: Policies,
    /// Redirect of requests without TLS.
    pub(super) to_https: Option<Service>,
    /// Set if a rule that may refuse requests was not migrated: routes to the backend answer 501.
    pub(super) is_closed: bool,
}

/// Adds the upstream of a `backend` or `listen`. Its edits of messages become policies of its
/// routes.
pub(super) fn read(site: &mut Site, section: &Section, base: &Section) -> Backend {
    let defaults = base.lines.as_slice();
    let mut policies = Policies::default();
    let mut to_https = None;
    let mut is_closed = has_checks(site, section, defaults, &mut policies);
    let mut upstream = Upstream {
        name: section.name.clone(),
        ..Upstream::default()
    };
    let mut check_path = httpchk_path(section, defaults);
    let mut expected_status = None;
    let mut probe = Node::new("health-check");
    let mut is_checked = false;
    // Rules of `defaults` have the access lists of `defaults`.
    let lines = inherited(section, defaults).map(|line| (base, line));
    for (owner, line) in lines.chain(section.lines.iter().map(|line| (section, line))) {
        match line.word(0) {
            "server" => is_checked |= server(site, &mut upstream, line, &mut probe),
            "balance" => balance(site, &mut upstream, line),
            "cookie" => replace_setting(&mut upstream, "load-balancing", "sticky"),
            "http-check" if line.word(1) == "send" => {
                check_path = line.option("uri").map(str::to_owned).or(check_path);
            }
            "http-check" if line.word(1) == "expect" && line.word(2) == "status" => {
                expected_status = status_of(site, line);
            }
            "http-request" | "redirect" if rule::is_decision(line) => {
                let is_read = section.kind == "listen";
                is_closed |= !is_read && !read_decision(site, &mut to_https, owner, line);
            }
            "http-request" | "http-response" => {
                is_closed |= !headers::edit(site, &mut policies, line);
            }
            // In a `listen`, these are read with its frontend.
            "tcp-request" | "errorfile" if section.kind == "listen" => {}
            _ if checks::is_check(line) => {}
            "option" => option(site, line),
            "compression" if section.kind == "backend" => {
                line.note(site, "write `compression` in the policies of its routes");
            }
            "mode" | "timeout" | "acl" | "bind" | "use_backend" | "default_backend"
            | "http-reuse" | "compression" | "log" | "maxconn" | "description" | "id" => {}
            "retries" if line.word(1) == "3" => {}
            "default-server" | "retries" | "retry-on" => line.note(
                site,
                "write `retry` in the routes' policies, and what holds for servers in the upstream",
            ),
            _ => line.note(site, advice(line.word(0))),
        }
    }
    if is_checked {
        let check_type = check_type(check_path.as_deref(), expected_status);
        upstream.settings.push(probe.child(check_type));
    }
    timeouts(site, &mut upstream, section, defaults);
    is_closed |= !add(site, section, upstream);
    Backend {
        policies,
        to_https,
        is_closed,
    }
}

/// Notes checks of a backend, and adds its own field of `forwardfor`. Returns true if there is a check.
/// The rules of a `listen` are read with its frontend.
fn has_checks(
    site: &mut Site,
    section: &Section,
    defaults: &[Line],
    policies: &mut Policies,
) -> bool {
    if section.kind == "listen" {
        return false;
    }
    let lines = || defaults.iter().chain(&section.lines);
    let fields = lines().filter_map(headers::forwarded);
    policies.request_headers.extend(fields);
    let is_closed = checks::note_checks(site, lines());
    checks::note_rewrite(site, lines()) || is_closed
}

/// Reads a rule of a backend that answers requests; `owner` is the section with its access lists. A
/// redirect to `https` of requests without TLS is returned in `to_https`; returns false for any
/// other, which closes the backend.
fn read_decision(
    site: &mut Site,
    to_https: &mut Option<Service>,
    owner: &Section,
    line: &Line,
) -> bool {
    let conditions = condition::rule_conditions(line, owner).unwrap_or_default();
    let is_of_plain = |condition: &Condition| condition.is_only_plain();
    let service = rule::service(line).filter(|service| {
        let is_https = matches!(service, Service::Redirect { to: Some(to), .. } if to == "https");
        is_https && line.option("scheme").is_some()
    });
    let is_redirect = conditions.len() == 1 && conditions.iter().all(is_of_plain);
    let Some(service) = service.filter(|_| is_redirect) else {
        checks::note_check(site, line);
        return false;
    };
    to_https.get_or_insert(service);
    true
}

/// Adds the upstream of a section; returns false for one without targets, which is noted.
fn add(site: &mut Site, section: &Section, upstream: Upstream) -> bool {
    if upstream.targets.is_empty() {
        site.note(
            &section.place,
            &section.shown(),
            "it has no `server`, so nothing is served from it",
        );
        return false;
    }
    site.upstreams.push(upstream);
    true
}

/// Sets a setting of an upstream, replacing one with the same name.
fn replace_setting(upstream: &mut Upstream, name: &str, value: &str) {
    upstream.settings.retain(|it| !it.is(name));
    upstream.settings.push(Node::text(name, value));
}

/// Directives of `defaults` that apply to a section: rules, and those that it has none of the same
/// name of.
fn inherited<'l>(section: &'l Section, defaults: &'l [Line]) -> impl Iterator<Item = &'l Line> {
    const INHERITED: &[&str] = &["balance", "cookie", "default-server", "retries", "retry-on"];
    // Rules of `defaults` come before the section's own.
    const ADDED: &[&str] = &["http-request", "http-response"];
    let has_own = |name: &str| section.lines.iter().any(|line| line.word(0) == name);
    defaults.iter().filter(move |line| {
        let name = line.word(0);
        ADDED.contains(&name) || (INHERITED.contains(&name) && !has_own(name))
    })
}

/// Options that describe the proxy's behaviour anyway, or are read elsewhere.
const KNOWN_OPTIONS: &[&str] = &[
    "abortonclose",
    "clitcpka",
    "contstats",
    "dontlog-normal",
    "dontlognull",
    "forwardfor",
    "http-ignore-probes",
    "http-keep-alive",
    "http-server-close",
    "httpchk",
    "httplog",
    "httpslog",
    "log-health-checks",
    "log-separate-errors",
    "logasap",
    "redispatch",
    "socket-stats",
    "splice-auto",
    "splice-request",
    "splice-response",
    "srvtcpka",
    "tcp-check",
    "tcp-smart-accept",
    "tcp-smart-connect",
    "tcpka",
    "tcplog",
];

/// Notes an option without a counterpart.
pub(super) fn option(site: &mut Site, line: &Line) {
    if !KNOWN_OPTIONS.contains(&line.word(1)) {
        line.note(
            site,
            "not carried over; see docs/learn/coming-from/haproxy.md",
        );
    }
}

/// Adds the upstream of a `backend` or `listen` in `mode tcp`; returns true if connections can be
/// relayed to it.
pub(super) fn read_relayed(site: &mut Site, section: &Section, base: &Section) -> bool {
    let defaults = base.lines.as_slice();
    let before = site.upstreams.len();
    let backend = read(site, section, base);
    let Some(upstream) = site.upstreams.get_mut(before) else {
        return false;
    };
    // Relays have neither cookies nor requests nor request timeouts.
    let is_sticky = |it: &Node| it.is("load-balancing") && it.first() == Some("\"sticky\"");
    upstream
        .settings
        .retain(|it| !(is_sticky(it) || it.is("protocol")));
    upstream.timeouts.retain(|it| it.is("connect-ms"));
    let fault = relay_fault(upstream, section, defaults);
    if let Some((line, cause)) = fault {
        let advice = format!("{cause}; no connection leads to the backend until then");
        line.note(site, &advice);
        site.upstreams.truncate(before);
        return false;
    }
    !backend.is_closed
}

/// The first server with connections that would begin with different bytes than under `HAProxy`, and the
/// reason.
fn relay_fault<'s>(
    upstream: &Upstream,
    section: &'s Section,
    defaults: &'s [Line],
) -> Option<(&'s Line, &'static str)> {
    let mut lines = defaults.iter().chain(section.lines("default-server"));
    let of_all = |line: &&Line| line.word(0) == "default-server" && has_proxy_header(line);
    if let Some(line) = lines.find(of_all) {
        return Some((line, "write `send-proxy` of the upstream"));
    }
    let mut settings = upstream.settings.iter();
    let current = settings.find(|setting| setting.is("send-proxy"));
    section.lines("server").find_map(|line| {
        let wanted = proxy_header(line);
        let cause = if line.has("ssl") && upstream.tls.is_some() {
            "relayed bytes are not encrypted again"
        } else if has_proxy_header(line) && !is_plain_proxy_header(line) {
            "the `PROXY` header has addresses alone here"
        } else if wanted.as_ref() != current {
            "an upstream sends one `PROXY` header to all its targets"
        } else {
            return None;
        };
        Some((line, cause))
    })
}

/// Returns true if connections to a server begin with a PROXY protocol header.
fn has_proxy_header(line: &Line) -> bool {
    let mut words = line.words.iter();
    words.any(|word| word.starts_with("send-proxy"))
}

/// Returns true if the header has only addresses, and no fields such as those about TLS.
fn is_plain_proxy_header(line: &Line) -> bool {
    let mut words = line.words.iter();
    words.all(|word| {
        let is_plain = matches!(word.as_str(), "send-proxy" | "send-proxy-v2");
        is_plain || !(word.starts_with("send-proxy") || word == "proxy-v2-options")
    })
}

/// Setting for a server's PROXY protocol header.
fn proxy_header(line: &Line) -> Option<Node> {
    let mut words = line.words.iter();
    let version = words.find_map(|word| match word.as_str() {
        "send-proxy" => Some("v1"),
        word if word.starts_with("send-proxy-v2") => Some("v2"),
        _ => None,
    })?;
    Some(Node::text("send-proxy", version))
}

/// Path of the last `option httpchk`: `/` without a URI, `None` without the option.
fn httpchk_path(section: &Section, defaults: &[Line]) -> Option<String> {
    let line = defaults
        .iter()
        .chain(&section.lines)
        .rfind(|line| line.word(0) == "option" && line.word(1) == "httpchk")?;
    let uri = line.words.iter().skip(2).find(|word| word.starts_with('/'));
    Some(uri.cloned().unwrap_or_else(|| "/".to_owned()))
}

/// Block `type` of a health check: HTTP if there is a path, otherwise TCP.
fn check_type(path: Option<&str>, expected_status: Option<Node>) -> Node {
    let Some(path) = path else {
        return Node::text("type", "tcp");
    };
    Node::text("type", "http")
        .child(Node::text("path", path))
        .children(expected_status)
}

/// Setting for an expected status or a range such as `200-399`.
fn status_of(site: &mut Site, line: &Line) -> Option<Node> {
    let status = status_node(line.word(3));
    if status.is_none() {
        line.note(site, "write `expected-status` of the health check");
    }
    status
}

fn status_node(word: &str) -> Option<Node> {
    let is_status = |text: &str| text.parse::<u16>().is_ok_and(|it| (100..600).contains(&it));
    match word.split_once('-') {
        Some((first, last)) if is_status(first) && is_status(last) => {
            Some(Node::text("expected-status", word))
        }
        None if is_status(word) => Some(Node::new("expected-status").word(word)),
        Some(_) | None => None,
    }
}

/// Converts `timeout connect`, `timeout server` and `timeout tunnel`.
fn timeouts(site: &mut Site, upstream: &mut Upstream, section: &Section, defaults: &[Line]) {
    let timeouts = defaults
        .iter()
        .chain(&section.lines)
        .filter(|line| line.word(0) == "timeout");
    let (mut connect, mut read, mut tunnel) = (None, None, None);
    for line in timeouts {
        let ms = units::milliseconds(line.word(2), 1).filter(|ms| *ms > 0);
        let mut bounded = |setting: &str| {
            let ms = ms?;
            Some(site.within(&line.place, &line.text(), setting, ms))
        };
        match line.word(1) {
            "connect" => connect = bounded("connect").or(connect),
            "server" => read = bounded("read").or(read),
            "tunnel" => tunnel = bounded("idle").or(tunnel),
            "queue" => line.note(site, "write `limits { max-queue-wait-secs … }`"),
            "check" => line.note(site, "write `timeout-secs` of the health check"),
            _ => {}
        }
    }
    let timeouts = [
        ("connect-ms", connect),
        ("request-ms", read),
        ("read-ms", read),
    ];
    for (name, ms) in timeouts.into_iter().chain([("idle-ms", tunnel)]) {
        upstream
            .timeouts
            .extend(ms.map(|ms| Node::number(name, ms)));
    }
}

/// Adds a target; returns true if it has a health check.
fn server(site: &mut Site, upstream: &mut Upstream, line: &Line, probe: &mut Node) -> bool {
    let address = line.word(2);
    if address.starts_with("unix@") || address.starts_with('/') {
        line.note(site, "let the server listen on a port of 127.0.0.1");
        return false;
    }
    let mut weight = line
        .option("weight")
        .and_then(|word| word.parse().ok())
        .unwrap_or(1);
    if line.has("disabled") {
        weight = 0;
        line.note(
            site,
            "it has weight 0, so it gets no requests until the admin interface gives it another",
        );
    }
    if line.has("backup") {
        upstream.backups.push(target_address(address));
    }
    if line.has("ssl") && upstream.tls.is_none() {
        upstream.tls = Some(tls(site, line));
    }
    if line.has("proto") && line.option("proto") == Some("h2") {
        replace_setting(upstream, "protocol", "h2");
    }
    send_proxy(site, upstream, line);
    if line.has("maxconn") {
        line.note(site, "write `connection-pool { max-connections … }`");
    }
    let unwritten = line.words.iter().skip(3);
    let unwritten: Vec<&str> = unwritten
        .map(String::as_str)
        .filter(|word| UNWRITTEN.contains(word))
        .collect();
    if !unwritten.is_empty() {
        let advice = format!(
            "not carried over: {}; see `upstreams` in docs/reference/config.md",
            unwritten.join(", ")
        );
        line.note(site, &advice);
    }
    let weight = site.within(&line.place, &line.text(), "weight", weight);
    let is_first = upstream.targets.is_empty();
    let address = target_address(address);
    if upstream.targets.iter().any(|(it, _)| *it == address) {
        line.note(site, "the upstream has this target already");
        return line.has("check");
    }
    upstream.targets.push((address, weight));
    let is_checked = line.has("check");
    if is_checked && is_first {
        *probe = std::mem::take(probe).children(check_settings(line));
    }
    is_checked
}

/// Words of a `server` with an effect but no counterpart.
const UNWRITTEN: &[&str] = &[
    "addr",
    "agent-check",
    "alpn",
    "check-send-proxy",
    "check-sni",
    "check-ssl",
    "crl-file",
    "crt",
    "downinter",
    "error-limit",
    "fastinter",
    "minconn",
    "observe",
    "on-error",
    "on-marked-down",
    "on-marked-up",
    "port",
    "redir",
    "resolvers",
    "slowstart",
    "source",
    "track",
    "verifyhost",
];

/// Converts the PROXY protocol header, which an upstream takes from its first server.
fn send_proxy(site: &mut Site, upstream: &mut Upstream, line: &Line) {
    let wanted = proxy_header(line);
    let is_first = upstream.targets.is_empty();
    let mut settings = upstream.settings.iter();
    let current = settings.find(|setting| setting.is("send-proxy")).cloned();
    if is_first && line.option("proto") != Some("h2") {
        upstream.settings.extend(wanted);
    } else if wanted != current {
        let advice = "an upstream sends one header to all its targets, and none by HTTP/2";
        line.note(site, advice);
    }
}

/// Converts an address to `host:port`: port 80 by default, and the loopback address for
/// `localhost`.
fn target_address(address: &str) -> String {
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let address = if has_port {
        address.to_owned()
    } else {
        format!("{address}:80")
    };
    address.replace("localhost:", "127.0.0.1:")
}

/// Settings of the block `tls` for a `server` with `ssl`.
fn tls(site: &mut Site, line: &Line) -> Vec<Node> {
    let mut tls = Vec::new();
    if let Some(name) = line
        .option("sni")
        .and_then(|it| it.strip_prefix("str(")?.strip_suffix(')'))
    {
        tls.push(Node::text("sni", name));
    }
    match line.option("ca-file").filter(|file| file.starts_with('/')) {
        Some(file) => tls.push(Node::text("ca-file", file)),
        None if line.option("verify") == Some("none") => line.note(site, "the certificate is verified here: write `tls { ca-file … }`, or `verify #false` with `pin-sha256`",
        ),
        None => {}
    }
    tls
}

/// Interval and thresholds of a server's health check; intervals are at least a second.
fn check_settings(line: &Line) -> impl Iterator<Item = Node> {
    let interval = line
        .option("inter")
        .and_then(|word| units::milliseconds(word, 1));
    let rise = line.option("rise").and_then(|word| word.parse().ok());
    let fall = line.option("fall").and_then(|word| word.parse().ok());
    let interval = interval.map(|ms| ms.clamp(1_000, 86_400_000));
    let timeout = units::probe_timeout(interval, None);
    let timeout = timeout.map(|ms| Node::number("timeout-ms", ms));
    let interval = interval.map(|ms| Node::number("interval-ms", ms));
    let rise = rise.map(|number| Node::number("healthy-threshold", number));
    let fall = fall.map(|number| Node::number("unhealthy-threshold", number));
    [interval, timeout, rise, fall].into_iter().flatten()
}

fn balance(site: &mut Site, upstream: &mut Upstream, line: &Line) {
    let word = match line.word(1) {
        "roundrobin" | "static-rr" => return,
        "leastconn" => "least_connections",
        "source" => "ip_hash",
        "random" => "random_two",
        _ => {
            line.note(
                site,
                "write `load-balancing`: `ip_hash` for clients, `sticky` for sessions",
            );
            return;
        }
    };
    let is_sticky = |it: &Node| it.is("load-balancing") && it.first() == Some("\"sticky\"");
    if !upstream.settings.iter().any(is_sticky) {
        replace_setting(upstream, "load-balancing", word);
    }
}
