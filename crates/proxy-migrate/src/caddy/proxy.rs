//! `reverse_proxy`.

use super::parser::Directive;
use super::value::{default_of, edit};
use crate::kdl::Node;
use crate::site::{Message, Policies, Site, Upstream, header_fault};
use crate::units;

/// Header fields that the proxy sets itself for upstreams.
const OURS: &[&str] = &[
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "connection",
    "upgrade",
];

/// Settings of an upstream's `health-check`.
#[derive(Default)]
struct HealthCheck {
    /// Settings within the block `type`.
    probe: Vec<Node>,
    /// Settings beside the block `type`.
    schedule: Vec<Node>,
}

impl HealthCheck {
    fn is_empty(&self) -> bool {
        self.probe.is_empty() && self.schedule.is_empty()
    }

    fn into_node(self) -> Node {
        let probe = Node::text("type", "http").children(self.probe);
        let block = Node::new("health-check").child(probe);
        block.children(self.schedule)
    }
}

/// Adds the upstream of a `reverse_proxy`; returns its name.
pub(super) fn read(
    site: &mut Site,
    directive: &Directive,
    words: &[String],
    policies: &mut Policies,
) -> Option<String> {
    if has_lost_edit(site, directive) {
        return None;
    }
    let mut upstream = Upstream::default();
    let listed = directive.block.iter().filter(|it| it.name() == "to");
    let listed: Vec<String> = listed.flat_map(|it| it.arguments().to_vec()).collect();
    for word in words.iter().chain(&listed) {
        target(site, directive, &mut upstream, word);
    }
    let mut check = HealthCheck::default();
    for line in &directive.block {
        option(site, &mut upstream, &mut check, policies, line);
    }
    if upstream.targets.is_empty() {
        return None;
    }
    if !check.is_empty() {
        let time = |name: &str| {
            let line = directive.block.iter().find(|it| it.name() == name)?;
            Some(units::milliseconds(line.word(1), 1_000)?.max(1_000))
        };
        let written = time("health_timeout");
        let timeout = units::probe_timeout(time("health_interval"), written);
        if timeout != written {
            check.schedule.retain(|node| !node.is("timeout-ms"));
            let timeout = timeout.map(|ms| Node::number("timeout-ms", ms));
            check.schedule.extend(timeout);
        }
        upstream.settings.push(check.into_node());
    }
    if let Some(same) = site.upstream_like(&upstream) {
        return Some(same);
    }
    let first = upstream.targets.first().map(|(address, _)| address.clone());
    upstream.name = site.upstream_name(&first.unwrap_or_default());
    let name = upstream.name.clone();
    site.upstreams.push(upstream);
    Some(name)
}

/// Returns true if a field of the client would reach the upstream that the block removes or edits, or
/// if the path would not be rewritten; notes it.
fn has_lost_edit(site: &mut Site, directive: &Directive) -> bool {
    let mut is_lost = false;
    for line in &directive.block {
        let is_edit = match line.name() {
            "header_up" if line.word(1).starts_with('-') => line.word(1).contains('*'),
            // A third word makes it a replacement within the value.
            "header_up" => {
                line.words.len() > 3 && !OURS.contains(&&*line.word(1).to_ascii_lowercase())
            }
            "rewrite" | "method" => true,
            _ => false,
        };
        if is_edit {
            is_lost = true;
            site.note(
                &line.place,
                &line.shown(),
                "write `request-headers` or `rewrite` in the route's policies; the route answers 501 until then",
            );
        }
    }
    is_lost
}

pub(super) fn target(site: &mut Site, directive: &Directive, upstream: &mut Upstream, word: &str) {
    let word = match default_of(word) {
        Some(default) => {
            site.note(
                &directive.place,
                word,
                "the variable's default is written: a target has no variables",
            );
            default
        }
        None => word,
    };
    let (scheme, authority) = word.split_once("://").unwrap_or(("http", word));
    if authority.starts_with("unix/")
        || word.starts_with("unix/")
        || word.contains('{')
        || word.starts_with("srv+")
    {
        site.note(
            &directive.place,
            word,
            "write a target as a host and a port",
        );
        return;
    }
    let authority = authority.trim_end_matches('/');
    let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
    let host = if host.is_empty() || host == "localhost" {
        "127.0.0.1"
    } else {
        host
    };
    let port = match (port, scheme) {
        ("", "https") => "443",
        ("", _) => "80",
        (port, _) => port,
    };
    if port.parse::<u16>().is_err() {
        site.note(
            &directive.place,
            word,
            "write a target for each port of the range",
        );
        return;
    }
    match scheme {
        "https" => upstream.tls = Some(Vec::new()),
        "h2c" if !upstream.settings.iter().any(|it| it.is("protocol")) => {
            upstream.settings.push(Node::text("protocol", "h2"));
        }
        _ => {}
    }
    upstream.targets.push((format!("{host}:{port}"), 1));
}

fn option(
    site: &mut Site,
    upstream: &mut Upstream,
    check: &mut HealthCheck,
    policies: &mut Policies,
    line: &Directive,
) {
    let ms = units::milliseconds(line.word(1), 1_000).filter(|ms| *ms > 0);
    match line.name() {
        "lb_policy" => match line.word(1) {
            "round_robin" => {}
            "least_conn" => upstream.settings.push(Node::text("load-balancing", "least_connections")),
            "ip_hash" | "client_ip_hash" => upstream.settings.push(Node::text("load-balancing", "ip_hash")),
            "random_choose" => upstream.settings.push(Node::text("load-balancing", "random_two")),
            "cookie" => upstream.settings.push(Node::text("load-balancing", "sticky")),
            _ => site.note(&line.place, &line.shown(), "the policies are in docs/reference/config.md: `load-balancing`"),
        },
        "health_uri" => check.probe.push(Node::text("path", line.word(1))),
        "health_status" => {
            let class = line.word(1).strip_suffix("xx").and_then(|it| it.parse::<u8>().ok());
            match (line.word(1).parse::<u64>(), class) {
                (Ok(status @ 100..=599), _) => check.probe.push(Node::number("expected-status", status)),
                (_, Some(class @ 1..=5)) => {
                    let range = format!("{class}00-{class}99");
                    check.probe.push(Node::text("expected-status", &range));
                }
                _ => site.note(&line.place, &line.shown(), "write `expected-status` of the health check"),
            }
        }
        "health_interval" | "health_timeout" => {
            let setting = line.name().trim_start_matches("health_");
            let ms = ms.map(|ms| site.within(&line.place, &line.shown(), setting, ms));
            check.schedule.extend(ms.map(|ms| Node::number(&format!("{setting}-ms"), ms)));
        }
        "max_fails" => {
            if let Ok(failures) = line.word(1).parse() {
                let failures = Node::number("consecutive-failures", failures);
                upstream.settings.push(Node::new("outlier-detection").child(failures));
            }
        }
        "header_up" => {
            let field = line.word(1);
            let bare = field.trim_start_matches(['+', '-']).to_ascii_lowercase();
            let value = line.words.get(2).map(String::as_str);
            let is_client_host = bare == "host" && matches!(value, Some("{host}" | "{hostport}" | "{http.request.host}"));
            if OURS.contains(&&*bare) || is_client_host {
                return;
            }
            let value = match value {
                Some("{upstream_hostport}") => upstream.targets.first().map(|(address, _)| address.as_str()),
                value => value,
            };
            let node = edit(field, value, Message::Request);
            if node.is_none() {
                site.note(&line.place, &line.shown(), "see docs/operate/headers.md for values; the field is not sent until then");
            }
            // If this field were not set, the client's field would be forwarded instead.
            let is_set = !field.starts_with(['+', '-', '?']) && bare != "host";
            let is_removed = is_set && header_fault(field, Message::Request).is_none();
            let removed = is_removed.then(|| Node::text("remove", field));
            policies.request_headers.extend(node.or(removed));
        }
        "header_down" => match edit(line.word(1), line.words.get(2).map(String::as_str), Message::Response) {
            Some(node) => policies.response_headers.push(node),
            None => site.note(&line.place, &line.shown(), "see docs/operate/headers.md for values"),
        },
        "to" | "flush_interval" | "buffer_requests" | "buffer_responses" => {}
        "transport" => transport(site, upstream, line),
        "lb_try_duration" | "lb_try_interval" | "fail_duration" => site.note(
            &line.place,
            &line.shown(),
            "failed connections go to other targets by themselves; `retry` and `outlier-detection` bound it",
        ),
        _ => site.note(&line.place, &line.shown(), "not carried over; see docs/learn/coming-from/caddy.md"),
    }
}

fn transport(site: &mut Site, upstream: &mut Upstream, block: &Directive) {
    if block.word(1) != "http" {
        site.note(
            &block.place,
            &block.shown(),
            "put a server that speaks HTTP before it",
        );
        return;
    }
    for line in &block.block {
        let ms = units::milliseconds(line.word(1), 1_000).filter(|ms| *ms > 0);
        let setting = match line.name() {
            "dial_timeout" => Some("connect"),
            "response_header_timeout" => Some("request"),
            "read_timeout" => Some("read"),
            _ => None,
        };
        if let Some((setting, ms)) = setting.zip(ms) {
            let ms = site.within(&line.place, &line.shown(), setting, ms);
            upstream
                .timeouts
                .push(Node::number(&format!("{setting}-ms"), ms));
            continue;
        }
        match (line.name(), ms) {
            ("tls", _) => drop(upstream.tls.get_or_insert_default()),
            ("tls_server_name", _) => {
                let tls = upstream.tls.get_or_insert_default();
                tls.push(Node::text("sni", line.word(1)));
            }
            ("keepalive" | "compression", _) => {}
            _ => site.note(&line.place, &line.shown(), "certificates are verified: write `tls { ca-file … }`; else see docs/reference/config.md"),
        }
    }
}
