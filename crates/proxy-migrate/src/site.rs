//! Model of the converted configuration, common to all languages.

mod bounds;
mod header_name;
pub(crate) mod path_regex;

use crate::index::{Certificates, Positions};
use crate::kdl::Node;
use crate::migrated::{NotMigrated, Place};
use crate::work;
use std::collections::{HashMap, HashSet};

pub(crate) use header_name::{Message, fault as header_fault};

/// Maximum number of conditions and edits of all routes; a server's hosts count for each of its
/// locations.
const MAX_ROUTE_PARTS: usize = 1_000_000;
/// A practically unlimited body size.
pub(crate) const MAX_BODY_BYTES: u64 = 1 << 40;
/// Maximum length of a name, which leaves room for a number: names may have 128 characters.
const MAX_NAME_CHARS: usize = 100;

/// The configuration to write.
#[derive(Debug, Default)]
pub(crate) struct Site {
    /// Top-level blocks other than those below.
    pub(crate) settings: Vec<Node>,
    pub(crate) listeners: Vec<Listener>,
    pub(crate) routes: Vec<Route>,
    pub(crate) upstreams: Vec<Upstream>,
    /// `agent` nodes.
    pub(crate) agents: Vec<Node>,
    /// Names of login servers' agents, by their settings.
    agent_names: HashMap<String, String>,
    /// Directives that were not migrated.
    pub(crate) notes: Vec<NotMigrated>,
    route_names: Positions,
    upstream_names: Positions,
    /// Upstreams with a single target of weight 1, by address.
    lone_targets: Positions,
    /// Upstreams by everything except their names.
    equal_upstreams: Positions,
    /// Names of upstreams by the first upstream with the same targets, and by TLS settings.
    tls_upstreams: HashMap<(String, String), String>,
    listener_names: Positions,
    listener_addresses: Positions,
    certificates: Certificates,
    /// Password files that `basic-auth` can read.
    pub(crate) password_files: HashSet<String>,
    /// Names of upstreams without targets.
    pub(crate) empty_upstreams: HashSet<String>,
    /// Number of conditions and edits of all routes.
    parts: usize,
}

#[derive(Debug, Default)]
pub(crate) struct Listener {
    pub(crate) name: String,
    /// Address: `host:port` or `unix:/path`.
    pub(crate) address: String,
    pub(crate) is_tls: bool,
    /// HTTP/3 is requested; written only if other settings permit it.
    pub(crate) http3: bool,
    /// How connections are relayed; `None` for HTTP.
    pub(crate) relay: Option<Relay>,
    /// Certificates; the first is the default.
    pub(crate) certificates: Vec<Certificate>,
    /// Settings of the block `tls`.
    pub(crate) tls: Vec<Node>,
    pub(crate) settings: Vec<Node>,
    pub(crate) timeouts: Vec<Node>,
}

/// Protocol of a listener that relays connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relay {
    /// TCP, with or without TLS termination.
    Tcp,
    /// TLS passed through to the targets, selected by server name.
    Passthrough,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Certificate {
    pub(crate) cert: String,
    pub(crate) key: String,
    pub(crate) names: Vec<String>,
}

#[derive(Clone, Debug)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) priority: Option<u32>,
    /// Names of listeners; empty for all.
    pub(crate) listeners: Vec<String>,
    pub(crate) hosts: Vec<String>,
    /// Alternative paths; empty for every path.
    pub(crate) paths: Vec<Path>,
    /// Further conditions.
    pub(crate) matches: Vec<Node>,
    pub(crate) service: Service,
    /// Agents that decide on each request.
    pub(crate) agents: Vec<String>,
    pub(crate) policies: Policies,
    /// Host in the test of a route without a host.
    pub(crate) sample_host: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    Exact(String),
    /// Whole segments, or every path after a trailing slash.
    Prefix(String),
    /// Every path that starts with the text.
    Beginning(String),
    Regex(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    Upstream(String),
    Static {
        root: String,
        index: Option<String>,
        fallback: Option<String>,
        precompressed: bool,
    },
    Redirect {
        to: Option<String>,
        status: u16,
        /// Prefix of the path, and its replacement.
        replace_prefix: Option<(String, String)>,
    },
    Respond {
        status: u16,
        body: Option<String>,
        /// Media type; `None` for plain text.
        content_type: Option<String>,
    },
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Policies {
    pub(crate) request_headers: Vec<Node>,
    pub(crate) response_headers: Vec<Node>,
    pub(crate) timeouts: Vec<Node>,
    /// Rewrite of the path for the upstream.
    pub(crate) rewrite: Option<Rewrite>,
    /// Set if the rewrite does not adjust `Location` in responses.
    pub(crate) keeps_location: bool,
    pub(crate) allow: Vec<String>,
    pub(crate) deny: Vec<String>,
    /// Further policies.
    pub(crate) settings: Vec<Node>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rewrite {
    Strip(String),
    Replace(String, String),
    Path(String),
    /// A path made of groups of the route's only expression.
    Captures(String),
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Upstream {
    pub(crate) name: String,
    /// Addresses with their weights.
    pub(crate) targets: Vec<(String, u64)>,
    /// Addresses of targets that serve only while no other target can.
    pub(crate) backups: Vec<String>,
    pub(crate) settings: Vec<Node>,
    pub(crate) timeouts: Vec<Node>,
    /// Settings for TLS to the targets; `None` for plaintext.
    pub(crate) tls: Option<Vec<Node>>,
    /// Set if a route uses the upstream with these TLS settings.
    pub(crate) has_its_tls: bool,
}

impl Route {
    pub(crate) fn new(name: String, service: Service) -> Self {
        Self {
            name,
            priority: None,
            listeners: Vec::new(),
            hosts: Vec::new(),
            paths: Vec::new(),
            matches: Vec::new(),
            service,
            agents: Vec::new(),
            policies: Policies::default(),
            sample_host: None,
        }
    }
}

impl Service {
    /// Response for content that could not be converted.
    pub(crate) fn not_migrated() -> Self {
        Self::Respond {
            status: 501,
            body: Some("not migrated".to_owned()),
            content_type: None,
        }
    }

    /// Response in the proxy's default format.
    pub(crate) const fn refusal(status: u16) -> Self {
        Self::Respond {
            status,
            body: None,
            content_type: None,
        }
    }
}

impl Site {
    /// Notes a directive that was not converted, or only in part.
    pub(crate) fn note(&mut self, place: &Place, directive: &str, advice: &str) {
        self.notes.push(NotMigrated {
            place: place.clone(),
            directive: directive.to_owned(),
            advice: advice.to_owned(),
        });
    }

    /// Permits bodies of any size, as servers without a limit do, and header fields of this size.
    pub(crate) fn raise_limits(&mut self, header_bytes: u64) {
        let is_relay = |it: &Listener| it.relay.is_some();
        if self.listeners.iter().all(is_relay) {
            return;
        }
        let position = self.settings.iter().position(|it| it.is("limits"));
        let limits = position.map_or_else(|| Node::new("limits"), |at| self.settings.remove(at));
        let limits = limits
            .child(Node::number("max-body-size-bytes", MAX_BODY_BYTES))
            .child(Node::number("max-header-value-bytes", header_bytes))
            .child(Node::number("max-header-size-bytes", header_bytes));
        self.settings.insert(0, limits);
    }

    /// Adds a route, unless the site is full.
    pub(crate) fn push_route(&mut self, route: Route) {
        self.parts = self.parts.saturating_add(route.parts());
        if !self.is_full() {
            self.routes.push(route);
        }
    }

    /// Returns true if the routes exceed the maximum number of parts, and the migration must fail.
    pub(crate) const fn is_full(&self) -> bool {
        self.parts > MAX_ROUTE_PARTS
    }

    /// An unused name for a route.
    pub(crate) fn route_name(&mut self, wanted: &str) -> String {
        let routes = &self.routes;
        self.route_names
            .read(routes.len(), |at| routes.get(at).map(|it| it.name.as_str()));
        self.route_names.free(name_of(wanted))
    }

    /// An unused name for an upstream.
    pub(crate) fn upstream_name(&mut self, wanted: &str) -> String {
        self.read_upstreams();
        self.upstream_names.free(name_of(wanted))
    }

    /// The upstream with a name.
    pub(crate) fn upstream_named(&mut self, name: &str) -> Option<&mut Upstream> {
        self.read_upstreams();
        let position = self.upstream_names.get(name)?;
        self.upstreams.get_mut(position)
    }

    /// The upstream with a single target.
    pub(crate) fn upstream_of(&mut self, target: &str) -> Option<&mut Upstream> {
        self.read_upstreams();
        let position = self.lone_targets.get(target)?;
        self.upstreams.get_mut(position)
    }

    /// Name of the upstream with the targets and settings of `name` and these TLS settings, and
    /// whether it is new. The first use sets the TLS settings of `name`; different ones create a
    /// copy.
    pub(crate) fn upstream_with_tls(
        &mut self,
        name: &str,
        tls: Option<Vec<Node>>,
    ) -> (String, bool) {
        work::step();
        let key = (name.to_owned(), format!("{tls:?}"));
        if let Some(known) = self.tls_upstreams.get(&key) {
            return (known.clone(), false);
        }
        let mut used = name.to_owned();
        match self.upstream_named(name) {
            Some(first) if !first.has_its_tls => {
                first.has_its_tls = true;
                first.tls = tls;
            }
            Some(first) => {
                let copy = Upstream {
                    tls,
                    ..first.clone()
                };
                used = self.upstream_name(name);
                self.upstreams.push(Upstream {
                    name: used.clone(),
                    ..copy
                });
            }
            None => {}
        }
        self.tls_upstreams.insert(key, used.clone());
        (used, true)
    }

    fn read_upstreams(&mut self) {
        let upstreams = &self.upstreams;
        let name = |at: usize| upstreams.get(at).map(|it| it.name.as_str());
        let target = |at: usize| match upstreams.get(at)?.targets.as_slice() {
            [(address, 1)] => Some(address.as_str()),
            _ => None,
        };
        self.upstream_names.read(upstreams.len(), name);
        self.lone_targets.read(upstreams.len(), target);
    }

    /// Name of an upstream that differs only in its name.
    pub(crate) fn upstream_like(&mut self, upstream: &Upstream) -> Option<String> {
        let upstreams = &self.upstreams;
        let key = |at: usize| upstreams.get(at).map(Upstream::content);
        self.equal_upstreams.read(upstreams.len(), key);
        let position = self.equal_upstreams.get(&upstream.content())?;
        upstreams.get(position).map(|it| it.name.clone())
    }

    /// Name of the agent for a login server with these settings, which is added if necessary.
    pub(crate) fn login_agent(&mut self, settings: Vec<Node>) -> String {
        work::step();
        let next = self.agent_names.len() + 1;
        let name = self
            .agent_names
            .entry(format!("{settings:?}"))
            .or_insert_with(|| {
                let name = format!("login-{next}");
                self.agents
                    .push(Node::text("agent", &name).children(settings));
                name
            });
        name.clone()
    }

    /// Position of the listener with an address.
    pub(crate) fn listener_at(&mut self, address: &str) -> Option<usize> {
        let listeners = &self.listeners;
        let key = |at: usize| listeners.get(at).map(|it| it.address.as_str());
        self.listener_addresses.read(listeners.len(), key);
        self.listener_addresses.get(address)
    }

    /// Names of listeners without TLS, and of those with it.
    pub(crate) fn by_protocol(&mut self, names: &[String]) -> (Vec<String>, Vec<String>) {
        let listeners = &self.listeners;
        let key = |at: usize| listeners.get(at).map(|it| it.name.as_str());
        self.listener_names.read(listeners.len(), key);
        let known = &self.listener_names;
        let is_tls = |name: &String| {
            let position = known.get(name);
            position
                .and_then(|at| listeners.get(at))
                .is_some_and(|it| it.is_tls)
        };
        names.iter().cloned().partition(|name| !is_tls(name))
    }

    /// An unused name for a listener.
    pub(crate) fn listener_name(&mut self, wanted: String) -> String {
        let listeners = &self.listeners;
        let key = |at: usize| listeners.get(at).map(|it| it.name.as_str());
        self.listener_names.read(listeners.len(), key);
        if self.listener_names.get(&wanted).is_none() {
            return wanted;
        }
        let numbered = format!("{wanted}-{}", listeners.len());
        self.listener_names.free(numbered)
    }

    /// Adds a certificate, or further names for it, to the listener at `position`.
    pub(crate) fn add_certificate<'n>(
        &mut self,
        position: usize,
        cert: &str,
        key: &str,
        names: impl IntoIterator<Item = &'n str>,
    ) {
        let Some(listener) = self.listeners.get_mut(position) else {
            return;
        };
        let next = listener.certificates.len();
        let (at, is_new) = self.certificates.position(position, cert, key, next);
        if is_new {
            listener.certificates.push(Certificate {
                cert: cert.to_owned(),
                key: key.to_owned(),
                names: Vec::new(),
            });
        }
        if let Some(certificate) = listener.certificates.get_mut(at) {
            let known = &mut self.certificates;
            let names = names.into_iter();
            let new = names.filter(|name| known.is_new_name(position, at, name));
            certificate.names.extend(new.map(str::to_owned));
        }
    }

    /// Removes the list of listeners from routes that list all of them.
    pub(crate) fn shorten_listeners(&mut self) {
        let is_relay = |it: &Listener| it.relay.is_some();
        let relays = self.listeners.iter().filter(|it| is_relay(it));
        let relays: HashSet<&str> = relays.map(|it| it.name.as_str()).collect();
        let all = self.listeners.len() - relays.len();
        for route in &mut self.routes {
            let is_of_relay = route
                .listeners
                .iter()
                .any(|it| relays.contains(it.as_str()));
            if route.listeners.len() == all && !is_of_relay {
                route.listeners.clear();
            }
        }
    }
}

impl Upstream {
    /// Everything except the name, as a key.
    fn content(&self) -> String {
        let Self {
            name: _,
            targets,
            backups,
            settings,
            timeouts,
            tls,
            has_its_tls: _,
        } = self;
        format!("{targets:?} {backups:?} {settings:?} {timeouts:?} {tls:?}")
    }
}

impl Route {
    /// Number of conditions and edits, plus one for the route.
    fn parts(&self) -> usize {
        let Policies {
            request_headers,
            response_headers,
            timeouts,
            rewrite: _,
            keeps_location: _,
            allow,
            deny,
            settings,
        } = &self.policies;
        let edits = request_headers.len() + response_headers.len() + timeouts.len();
        let conditions = self.hosts.len() + self.paths.len() + self.matches.len();
        let lists = self.listeners.len() + allow.len() + deny.len() + self.agents.len();
        let nodes = settings.iter().map(Node::size).sum::<usize>();
        1 + edits + conditions + lists + nodes
    }
}

/// Reduces a text to letters, digits, dots and dashes.
fn name_of(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let words = text.split(|c| !is_plain(c)).filter(|word| !word.is_empty());
    let name = words.collect::<Vec<_>>().join("-");
    let name: String = name.chars().take(MAX_NAME_CHARS).collect();
    if name.is_empty() {
        "all".to_owned()
    } else {
        name
    }
}

/// Regular expression that matches exactly a text.
pub(crate) fn escaped(text: &str) -> String {
    let mut regex = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() && !matches!(c, '/' | '-' | '_') {
            regex.push('\\');
        }
        regex.push(c);
    }
    regex
}
