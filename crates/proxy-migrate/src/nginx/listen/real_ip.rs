//! Converts `set_real_ip_from` to `trusted-proxies` of listeners.

use super::Listen;
use crate::kdl::Node;
use crate::nginx::parser::Directive;
use crate::nginx::scope::Scope;
use crate::site::Site;
use crate::units::is_network;
use std::collections::HashSet;

/// Adds the proxies that a server trusts to its listeners. A listener has one list for all of its
/// servers.
pub(in crate::nginx) fn read(site: &mut Site, scope: &Scope<'_>, listens: &[Listen]) {
    let all = scope.all("set_real_ip_from");
    let Some(first) = all.first() else {
        return;
    };
    let field = field(scope);
    if !is_known(field) {
        site.note(
            &first.place,
            &first.shown(),
            &format!("the client's address is read from `X-Forwarded-For`, not from `{field}`: write `trusted-proxies` in the listener if the proxy sends it"),
        );
        return;
    }
    let mut networks: Vec<&str> = Vec::new();
    for directive in all {
        match directive.word(0).filter(|it| is_network(it)) {
            Some(network) => networks.push(network),
            None => site.note(
                &directive.place,
                &directive.shown(),
                "write its address in `trusted-proxies` of the listener",
            ),
        }
    }
    let mut seen = HashSet::new();
    networks.retain(|network| seen.insert(*network));
    if networks.is_empty() {
        return;
    }
    let is_outermost = scope.is_outermost("set_real_ip_from");
    let node = Node::new("trusted-proxies").args(networks);
    for listen in listens {
        add(site, listen, &node, first, is_outermost);
    }
}

/// Field with the client's address.
fn field<'d>(scope: &Scope<'d>) -> &'d str {
    scope.word("real_ip_header").unwrap_or("X-Real-IP")
}

fn is_known(field: &str) -> bool {
    field.eq_ignore_ascii_case("x-forwarded-for") || field == "proxy_protocol"
}

/// The first `set_real_ip_from` of a scope, if the client's address is read from a field that is not
/// converted.
pub(in crate::nginx) fn unwritten<'d>(scope: &Scope<'d>) -> Option<&'d Directive> {
    let first = scope.all("set_real_ip_from").first().copied();
    first.filter(|_| !is_known(field(scope)))
}

fn add(site: &mut Site, listen: &Listen, node: &Node, directive: &Directive, is_outermost: bool) {
    let mut listeners = site.listeners.iter_mut();
    let Some(listener) = listeners.find(|it| it.name == listen.name) else {
        return;
    };
    let known = listener.settings.iter().find(|it| it.is("trusted-proxies"));
    let is_new = known.is_none();
    let is_same = known.is_none_or(|known| known == node);
    if is_new {
        listener.settings.push(node.clone());
    }
    if !(is_same && (is_outermost || !is_new)) {
        let advice = format!(
            "`trusted-proxies` of the listener `{}` holds for all hosts of the listener",
            listen.name
        );
        site.note(&directive.place, &directive.shown(), &advice);
    }
}
