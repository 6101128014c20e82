//! Frontends, as listeners and routes.

use super::advice::advice;
use super::backend::Backend;
use super::checks;
use super::condition::{self, Condition};
use super::error_pages;
use super::headers;
use super::parser::{Line, Section};
use super::rule;
use super::times::client_times;
use crate::kdl::Node;
use crate::site::{Certificate, Listener, Policies, Route, Service, Site};
use crate::source::Included;
use std::collections::HashMap;

/// Priority of the first rule; each further one has one less, and more than the routes without a priority.
const FIRST: u32 = 100_000;

/// A frontend while its routes are made.
pub(super) struct Frontend<'s> {
    name: &'s str,
    /// Names of its listeners, with and without TLS.
    pub(super) plain: Vec<String>,
    pub(super) tls: Vec<String>,
    policies: Policies,
    rules: u32,
    /// A rule that refuses requests was not carried over, so nothing is served.
    pub(super) is_closed: bool,
}

pub(super) fn read(
    site: &mut Site,
    section: &Section,
    defaults: &[Line],
    policies: &HashMap<String, Backend>,
    included: Included<'_>,
) {
    let mut frontend = Frontend::new(&section.name);
    frontend.is_closed = checks::are_left(site, defaults.iter().chain(&section.lines));
    let times = client_times(defaults.iter().chain(&section.lines));
    for line in section.lines("bind") {
        bind(site, &mut frontend, line, &times);
    }
    let pages = error_pages::read(site, defaults.iter().chain(&section.lines), included);
    frontend.policies.settings.extend(pages);
    let is_listen = section.kind == "listen";
    for line in &section.lines {
        match line.word(0) {
            "http-request" | "http-response" if !is_listen => {
                headers::edit(site, &mut frontend.policies, line);
            }
            "compression" if line.word(1) == "algo" => {
                let known = line.words.iter().skip(2).filter(|word| *word == "gzip");
                let codings = Node::new("codings").args(known.map(String::as_str));
                let node = Node::new("compression").children(codings.with_arguments());
                frontend.policies.settings.push(node);
            }
            "compression" => site.left(
                &line.place,
                &line.shown(),
                "write `compression { types … }`",
            ),
            "acl" | "bind" | "mode" | "option" | "timeout" | "use_backend" | "default_backend"
            | "redirect" | "http-request" | "http-response" | "log" | "description" | "id"
            | "errorfile" => {}
            "maxconn" => site.left(
                &line.place,
                &line.shown(),
                "write `limits { max-total-connections … }`",
            ),
            _ if is_listen || checks::is_check(line) => {}
            name => site.left(&line.place, &line.shown(), advice(name)),
        }
    }
    // A backend that serves nothing refuses requests.
    frontend.is_closed |= section.lines("use_backend").any(|line| {
        let serves = policies.get(line.word(1)).is_some_and(|it| !it.is_closed);
        !serves && condition::rule_conditions(line, section).is_none()
    });
    let is_decision = |line: &&Line| rule::is_decision(line) || line.word(0) == "redirect";
    let rules = defaults.iter().chain(&section.lines);
    for line in rules.filter(is_decision) {
        if site.is_full() {
            return;
        }
        decision(site, &mut frontend, section, line);
    }
    for line in section.lines("use_backend") {
        if site.is_full() {
            return;
        }
        use_backend(site, &mut frontend, section, line, policies);
    }
    let own = is_listen.then_some(section.name.as_str());
    let default = section
        .lines("default_backend")
        .map(|line| line.word(1))
        .last()
        .or(own);
    if let Some(backend) = default {
        let mut route = frontend.proxied(site, backend, &Condition::default(), policies);
        if is_closed(&frontend, policies.get(backend)) {
            route.service = Service::not_migrated();
            route.policies = Policies::default();
        }
        site.push_route(route);
    }
}

impl<'s> Frontend<'s> {
    pub(super) fn new(name: &'s str) -> Self {
        Self {
            name,
            plain: Vec::new(),
            tls: Vec::new(),
            policies: Policies::default(),
            rules: 0,
            is_closed: false,
        }
    }

    fn route(&self, site: &mut Site, part: &str, service: Service, condition: &Condition) -> Route {
        let name = site.route_name(&format!("{} {part}", self.name));
        let mut route = Route::new(name, service);
        route.listeners.clone_from(&self.plain);
        if !condition.is_plain {
            route.listeners.extend(self.tls.iter().cloned());
        }
        condition.clone().write(&mut route);
        route
    }

    /// A route to a backend.
    fn proxied(
        &self,
        site: &mut Site,
        backend: &str,
        condition: &Condition,
        policies: &HashMap<String, Backend>,
    ) -> Route {
        let service = Service::Upstream(backend.to_owned());
        let mut route = self.route(site, backend, service, condition);
        let backend_policies = policies.get(backend).map(|it| &it.policies);
        route.policies = joined(&self.policies, backend_policies);
        route
    }

    pub(super) fn priority(&mut self) -> u32 {
        let priority = FIRST.saturating_sub(self.rules);
        self.rules += 1;
        priority
    }
}

/// Whether a rule that refuses requests was not carried over, so that nothing is served.
fn is_closed(frontend: &Frontend<'_>, backend: Option<&Backend>) -> bool {
    frontend.is_closed || backend.is_some_and(|backend| backend.is_closed)
}

/// The policies of a frontend and of a backend.
fn joined(frontend: &Policies, backend: Option<&Policies>) -> Policies {
    let mut joined = frontend.clone();
    if let Some(backend) = backend.cloned() {
        joined.request_headers.extend(backend.request_headers);
        joined.response_headers.extend(backend.response_headers);
        joined.rewrite = backend.rewrite.or(joined.rewrite);
        joined.settings.extend(backend.settings);
    }
    joined
}

pub(super) fn bind(site: &mut Site, frontend: &mut Frontend<'_>, line: &Line, times: &[Node]) {
    let is_tls = line.has("ssl");
    for address in line.word(1).split(',') {
        let wildcard = address.strip_prefix("*:").or(address.strip_prefix(':'));
        let address = match (address.strip_prefix(":::"), wildcard) {
            (Some(port), _) => format!("[::]:{port}"),
            (None, Some(port)) => format!("0.0.0.0:{port}"),
            (None, None) => address.to_owned(),
        };
        let port = address.rsplit_once(':').map_or("", |(_, port)| port);
        if port.parse::<u16>().is_err() {
            site.left(&line.place, &line.shown(), "write a listener for each port");
            continue;
        }
        if site.listener_at(&address).is_some() {
            site.left(
                &line.place,
                &line.shown(),
                "another listener has the address",
            );
            continue;
        }
        let name = site.listener_name(match port {
            "80" => "http".to_owned(),
            "443" => "https".to_owned(),
            port => format!("port-{port}"),
        });
        let mut listener = Listener {
            name: name.clone(),
            address,
            is_tls,
            timeouts: times.to_vec(),
            ..Listener::default()
        };
        if let Some(file) = line.option("crt").filter(|_| is_tls) {
            listener.certificates.push(Certificate {
                cert: file.to_owned(),
                key: file.to_owned(),
                names: Vec::new(),
            });
            if file.strip_suffix(".pem").is_none() {
                site.left(
                    &line.place,
                    &line.shown(),
                    "write a `certificate` for each file of the folder",
                );
            }
        }
        if is_tls {
            client_auth(site, frontend, line, &mut listener);
        }
        if line.option("ssl-min-ver") == Some("TLSv1.3") {
            listener.tls.push(Node::text("min-version", "1.3"));
        }
        if line.has("accept-proxy") {
            listener.settings.push(crate::write::flag("proxy-protocol"));
            site.left(
                &line.place,
                &line.shown(),
                "name the balancers in `trusted-proxies` of the listener: without them every connection is closed",
            );
        }
        site.listeners.push(listener);
        let names = if is_tls {
            &mut frontend.tls
        } else {
            &mut frontend.plain
        };
        names.push(name);
    }
}

/// Authentication of clients by certificate.
fn client_auth(site: &mut Site, frontend: &mut Frontend<'_>, line: &Line, listener: &mut Listener) {
    let mode = match line.option("verify") {
        Some("required") => Some("required"),
        Some("optional") => Some("optional"),
        _ => None,
    };
    if let Some((file, mode)) = line.option("ca-file").zip(mode) {
        let block = Node::new("client-auth").child(Node::text("ca-file", file));
        listener.tls.push(block.child(Node::text("mode", mode)));
    }
    if let Some(list) = line.option("crl-file") {
        frontend.is_closed = true;
        let shown = format!("crl-file {list}");
        site.left(
            &line.place,
            &shown,
            "revoked certificates are not looked up; its routes answer 501 until it is taken out",
        );
    }
}

/// A rule that answers requests.
fn decision(site: &mut Site, frontend: &mut Frontend<'_>, section: &Section, line: &Line) {
    let Some(conditions) = condition::rule_conditions(line, section) else {
        frontend.is_closed = true;
        checks::note(site, line);
        return;
    };
    let Some(service) = answer(line) else {
        frontend.is_closed = true;
        site.left(
            &line.place,
            &line.shown(),
            "write `redirect` or `respond` in a route; its routes answer 501 until then",
        );
        return;
    };
    for condition in conditions {
        let is_of_clients = condition.is_empty() && !condition.sources.is_empty();
        if is_of_clients && matches!(service, Service::Respond { status: 403, .. }) {
            frontend.policies.deny.extend(condition.sources);
            continue;
        }
        if !condition.sources.is_empty() {
            frontend.is_closed = true;
            site.left(
                &line.place,
                &line.shown(),
                "write `deny` in the policies of a route with that condition; its routes answer 501 until then",
            );
            continue;
        }
        let mut route = frontend.route(site, "rule", service.clone(), &condition);
        route.priority = Some(frontend.priority());
        if !route.listeners.is_empty() {
            site.push_route(route);
        }
    }
}

fn answer(line: &Line) -> Option<Service> {
    let status = |name: &str, default: u16| {
        let written = line.option(name).and_then(|word| word.parse().ok());
        written.unwrap_or(default)
    };
    if line.has("redirect") {
        let to = match (
            line.option("scheme"),
            line.option("prefix"),
            line.option("location"),
        ) {
            (Some(scheme), _, _) => scheme.to_owned(),
            (_, Some(prefix), _) => prefix.trim_end_matches('/').to_owned(),
            (_, _, Some(location)) => location.to_owned(),
            _ => return None,
        };
        if to.contains('%') {
            return None;
        }
        return Some(Service::Redirect {
            to: Some(to),
            status: status("code", 302),
            replace_prefix: None,
        });
    }
    let body = line.option("string").or(line.option("lf-string"));
    Some(match line.word(1) {
        "deny" => Service::Respond {
            status: status("deny_status", 403),
            body: None,
        },
        _ => Service::Respond {
            status: status("status", 200),
            body: body.map(str::to_owned),
        },
    })
}

fn use_backend(
    site: &mut Site,
    frontend: &mut Frontend<'_>,
    section: &Section,
    line: &Line,
    policies: &HashMap<String, Backend>,
) {
    let backend = line.word(1);
    let conditions = condition::rule_conditions(line, section);
    let Some(conditions) = conditions.filter(|_| policies.contains_key(backend)) else {
        site.left(
            &line.place,
            &line.shown(),
            "write a route with that condition and `upstream`; until then the other routes take its requests",
        );
        return;
    };
    for condition in conditions {
        let mut route = frontend.proxied(site, backend, &condition, policies);
        route.priority = Some(frontend.priority());
        if is_closed(frontend, policies.get(backend)) {
            route.service = Service::not_migrated();
            route.policies = Policies::default();
        }
        route.policies.allow = condition.sources;
        if !route.policies.allow.is_empty() {
            site.left(
                &line.place,
                &line.shown(),
                "clients of other networks are answered 403 here, and reach no other backend",
            );
        }
        site.push_route(route);
    }
}
