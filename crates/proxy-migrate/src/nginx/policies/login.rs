//! Converts `auth_request` to an agent.

use crate::kdl::Node;
use crate::nginx::proxy;
use crate::nginx::scope::Scope;
use crate::nginx::value::{has_variables, is_copied};
use crate::site::Site;
use std::net::IpAddr;

/// Index of the block `server` in a scope.
const SERVER: usize = 1;

/// Adds the agent for the `auth_request` in effect in a scope, and returns its name; `None` without
/// one, or if its location has no upstream.
pub(super) fn read(site: &mut Site, scope: &Scope<'_>) -> Option<String> {
    let wanted = scope.word("auth_request").filter(|it| *it != "off")?;
    let locations = scope.blocks().nth(SERVER)?.iter();
    let mut locations = locations.filter(|it| it.name == "location");
    let location = locations.find(|it| match it.words.as_slice() {
        [path] => path == wanted,
        [operator, path] => operator == "=" && path == wanted,
        _ => false,
    })?;
    let pass = location
        .children()
        .iter()
        .find(|it| it.name == "proxy_pass")?;
    let url = pass.word(0).filter(|url| !has_variables(url))?;
    let (scheme, rest) = url.split_once("://")?;
    let (authority, path) = rest
        .find('/')
        .map_or((rest, wanted), |at| rest.split_at(at));
    let is_plain = matches!(scheme, "http" | "https") && !path.contains('?');
    if !is_plain || rest.starts_with("unix:") || site.empty_upstreams.contains(authority) {
        return None;
    }
    let inner = scope.within(location.children());
    let upstream = proxy::upstream(site, scheme, authority, pass, &inner);
    let host = authority.split(':').next().unwrap_or_default();
    let is_name = host.contains('.') && host.parse::<IpAddr>().is_err();
    let fields = scope.all("proxy_set_header").iter();
    let fields = fields.filter(|it| is_copied(scope, it));
    let fields = fields.filter_map(|it| it.word(0));
    let settings = [
        Some(Node::text("upstream", &upstream)),
        Some(Node::text("protocol", "forward-auth")),
        Some(Node::text("request-path", path)),
        is_name.then(|| Node::text("request-host", host)),
        Node::new("copy-headers").args(fields).with_arguments(),
        Some(Node::text("failure-mode", "closed")),
    ];
    Some(site.login_agent(settings.into_iter().flatten().collect()))
}
