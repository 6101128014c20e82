//! Directives that admit or refuse requests: passwords, login servers, networks.

use super::matcher::Definitions;
use super::order;
use super::parser::Directive;
use super::proxy;
use crate::kdl::Node;
use crate::site::{Message, Policies, Site, Upstream, header_fault};
use crate::units;

/// Prefixes of password hashes that `basic-auth` accepts.
const HASHES: &[&str] = &["$2a$", "$2b$", "$2y$", "$argon2"];

/// Addresses of clients that the global options take from the proxies before Caddy. The listeners of
/// the result do not, so lists of networks would be compared with the addresses of these proxies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Hidden {
    /// `trusted_proxies`, for `client_ip`.
    by_fields: bool,
    /// `proxy_protocol`, for `remote_ip` too.
    by_connections: bool,
}

impl Hidden {
    pub(super) fn read(options: &[Directive]) -> Self {
        let mut hidden = Self::default();
        let servers = options.iter().flat_map(|it| &it.block);
        for option in servers
            .filter(|it| it.name() == "servers")
            .flat_map(|it| &it.block)
        {
            hidden.by_fields |= option.name() == "trusted_proxies";
            hidden.by_connections |= option.name() == "listener_wrappers";
        }
        hidden
    }
}

/// Networks of the clients that a directive refuses.
pub(super) struct Refusal {
    networks: Vec<String>,
    /// Set if the clients of all other networks are refused instead.
    pub(super) is_for_others: bool,
}

/// The block `basic-auth` for a `basic_auth` of all requests; `None` if it cannot be converted.
pub(super) fn password(directive: &Directive, arguments: &[String]) -> Option<Node> {
    let realm = match arguments {
        [] => "restricted",
        [algorithm] if algorithm == "bcrypt" => "restricted",
        [algorithm, realm] if algorithm == "bcrypt" => realm.as_str(),
        _ => return None,
    };
    let is_text = |c: char| c.is_ascii_graphic() || c == ' ';
    let has_realm = !realm.is_empty() && !realm.contains('{') && realm.chars().all(is_text);
    let mut node = Node::new("basic-auth").child(Node::text("realm", realm));
    for line in &directive.block {
        let [name, hash] = line.words.as_slice() else {
            return None;
        };
        let is_known = HASHES.iter().any(|kind| hash.starts_with(kind));
        let is_user = is_known && !name.contains(['{', ':']);
        node = node.child(is_user.then(|| Node::text("user", name).raw(hash))?);
    }
    // Caddy forwards the credentials to the upstream.
    let node = node.child(crate::write::flag("forward-credentials"));
    (has_realm && !directive.block.is_empty()).then_some(node)
}

/// Adds an agent for a `forward_auth` of all requests, and returns its name; `None` if it cannot be
/// converted.
pub(super) fn login_server(
    site: &mut Site,
    directive: &Directive,
    arguments: &[String],
) -> Option<String> {
    let mut path = None;
    let mut fields: Vec<&str> = Vec::new();
    for line in &directive.block {
        match line.name() {
            "uri" if path.is_none() && is_plain_path(line.word(1)) => path = Some(line.word(1)),
            "copy_headers" => {
                let listed = line.block.iter().map(Directive::name);
                let names = line.arguments().iter().map(String::as_str).chain(listed);
                fields.extend(names);
            }
            _ => return None,
        }
    }
    let is_field = |name: &&str| header_fault(name, Message::Request).is_none();
    if !fields.iter().all(is_field) || arguments.is_empty() {
        return None;
    }
    let mut upstream = Upstream::default();
    for word in arguments {
        proxy::target(site, directive, &mut upstream, word);
    }
    let first = upstream.targets.first()?.0.clone();
    let name = if let Some(same) = site.upstream_like(&upstream) {
        same
    } else {
        upstream.name = site.upstream_name(&format!("login {first}"));
        let name = upstream.name.clone();
        site.upstreams.push(upstream);
        name
    };
    let settings = [
        Node::text("upstream", &name),
        Node::text("protocol", "forward-auth"),
        Node::text("request-path", path?),
    ];
    let copied = Node::new("copy-headers").args(fields).with_arguments();
    let closed = Node::text("failure-mode", "closed");
    let settings: Vec<Node> = settings.into_iter().chain(copied).chain([closed]).collect();
    Some(site.login_agent(settings))
}

fn is_plain_path(path: &str) -> bool {
    path.starts_with('/') && !path.contains(['?', '{'])
}

impl Refusal {
    /// Reads `respond @name 403` and the like, followed by content for all other requests: the
    /// networks apply to every route of that content.
    pub(super) fn read(
        directive: &Directive,
        later: &[&Directive],
        definitions: &Definitions,
        hidden: Hidden,
    ) -> Option<Self> {
        let is_refusal = match (directive.name(), directive.words.as_slice()) {
            ("abort", [_, _]) => true,
            ("respond" | "error", [_, _, status]) => status == "403",
            _ => false,
        };
        let is_list =
            is_refusal && !directive.has_block && later.iter().any(|it| !order::has_matcher(it));
        let words = definitions.only(directive.word(1)).filter(|_| is_list)?;
        let (is_for_others, words) = match words.split_first() {
            Some((first, rest)) if first == "not" => (true, rest),
            _ => (false, words),
        };
        let (kind, networks) = words.split_first()?;
        let is_client = match kind.as_str() {
            "remote_ip" => !hidden.by_connections,
            "client_ip" => !(hidden.by_fields || hidden.by_connections),
            _ => false,
        };
        let mut known: Vec<String> = Vec::new();
        for network in networks {
            match network.as_str() {
                "private_ranges" => known.extend(PRIVATE_RANGES.iter().map(|it| (*it).to_owned())),
                network if units::is_network(network) => known.push(network.to_owned()),
                _ => return None,
            }
        }
        (is_client && !known.is_empty()).then_some(Self {
            networks: known,
            is_for_others,
        })
    }

    /// Adds the networks to a route's policies.
    pub(super) fn apply(self, policies: &mut Policies) {
        if self.is_for_others {
            policies.allow.extend(self.networks);
        } else {
            policies.deny.extend(self.networks);
        }
    }
}

/// Networks of the placeholder `private_ranges`.
const PRIVATE_RANGES: &[&str] = &[
    "192.168.0.0/16",
    "172.16.0.0/12",
    "10.0.0.0/8",
    "127.0.0.0/8",
    "fd00::/8",
    "::1",
];
