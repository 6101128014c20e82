//! The risk of other networks of clients, inline and in files.

use crate::diff::risk::class::RiskClass;
use crate::diff::risk::{Compared, Risk};
use ipnet::IpNet;
use proxy_model::{Access, Model, NetworkFile, Setting};

/// Minimum length of the IPv4 prefix of a network with few clients.
const FEW_IPV4: u8 = 24;

/// Minimum length of the IPv6 prefix of a network with few clients: the network of one site.
const FEW_IPV6: u8 = 48;

/// Networks that are not routed in the Internet, as used by machines, load balancers and offices.
const PRIVATE: [&str; 9] = [
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.168.0.0/16",
    "::1/128",
    "fc00::/7",
    "fe80::/10",
];

/// Maximum number of networks that are named in one risk; further ones are counted.
const MAX_NAMED_NETWORKS: usize = 3;

/// The risks of the networks of retained listeners and routes.
pub(crate) fn network_risks(compared: &Compared<'_>) -> Vec<Risk> {
    let Compared { before, after, .. } = compared;
    let listeners = after.listeners.iter().filter_map(|new| {
        let mut listeners = before.listeners.iter();
        let old = listeners.find(|old| old.name == new.name)?;
        Some((format!("listener {}", new.name), [&old.access, &new.access]))
    });
    let routes = after.routes.iter().filter_map(|new| {
        let old = before.routes.iter().find(|old| old.id == new.id)?;
        let access = [&old.policies.access, &new.policies.access];
        Some((format!("route {}", new.id), access))
    });
    let risks = listeners.chain(routes).flat_map(|(subject, access)| {
        let changes = network_changes(compared, access).into_iter();
        changes.map(move |(class, change)| Risk {
            class,
            subject: subject.clone(),
            change,
        })
    });
    risks.collect()
}

/// Clients that are newly admitted or refused. Networks in a file and inline ones are equal; a
/// network counts as admitted before if other networks contain it.
pub(crate) fn network_changes(
    compared: &Compared<'_>,
    [old, new]: [&Access; 2],
) -> Vec<(RiskClass, String)> {
    let [(admitted, refused), (admits, refuses)] =
        [old, new].map(|one| (allowed(one), denied(one)));
    let wider = [
        ("admits", outside(&admits, &admitted)),
        ("no longer refuses", outside(&refused, &refuses)),
    ];
    let narrower = [
        ("no longer admits", outside(&admitted, &admits)),
        (
            "refuses",
            known(compared.after, outside(&refuses, &refused)),
        ),
    ];
    let classes = [
        (RiskClass::AccessWidened, wider),
        (RiskClass::RequestsRefused, narrower),
    ];
    let changes = classes.into_iter().filter_map(|(class, changes)| {
        let changes = changes
            .into_iter()
            .filter(|(_, networks)| !networks.is_empty());
        let texts: Vec<String> = changes
            .map(|(verb, networks)| format!("{verb} {}", shown(&networks)))
            .collect();
        (!texts.is_empty()).then(|| (class, texts.join(", ")))
    });
    changes.collect()
}

/// The networks that the `allow` lists admit: all if there are no such lists.
fn allowed(access: &Access) -> Vec<IpNet> {
    if access.allow.is_empty() && access.allow_files.is_empty() {
        return ["0.0.0.0/0", "::/0"]
            .iter()
            .filter_map(|every| every.parse().ok())
            .collect();
    }
    together(&access.allow, &access.allow_files)
}

fn denied(access: &Access) -> Vec<IpNet> {
    together(&access.deny, &access.deny_files)
}

fn together(inline: &[Setting<IpNet>], files: &[Setting<NetworkFile>]) -> Vec<IpNet> {
    let inline = inline.iter().map(|network| network.value);
    let files = files
        .iter()
        .flat_map(|file| file.value.networks.iter().copied());
    IpNet::aggregate(&inline.chain(files).collect())
}

/// Removes small networks that the configuration does not mention elsewhere: attackers are refused
/// by such networks.
fn known(model: &Model, mut networks: Vec<IpNet>) -> Vec<IpNet> {
    let listeners = model.listeners.iter();
    let trusted = listeners.clone().flat_map(|one| &one.trusted_proxies);
    let trusted = trusted.map(|network| network.value);
    let access = listeners.map(|one| &one.access);
    let access = access.chain(model.routes.iter().map(|one| &one.policies.access));
    let allowed = access.flat_map(|one| together(&one.allow, &one.allow_files));
    let private = PRIVATE.iter().filter_map(|text| text.parse().ok());
    let named: Vec<IpNet> = private.chain(trusted).chain(allowed).collect();
    let touches = |one: &IpNet, other: &IpNet| one.contains(other) || other.contains(one);
    networks.retain(|network| {
        let few = match network {
            IpNet::V4(_) => FEW_IPV4,
            IpNet::V6(_) => FEW_IPV6,
        };
        network.prefix_len() < few || named.iter().any(|other| touches(network, other))
    });
    networks
}

/// The members of `networks` that are in no member of `known`.
fn outside(networks: &[IpNet], known: &[IpNet]) -> Vec<IpNet> {
    let is_outside = |network: &&IpNet| !known.iter().any(|other| other.contains(*network));
    networks.iter().filter(is_outside).copied().collect()
}

fn shown(networks: &[IpNet]) -> String {
    let named: Vec<String> = networks
        .iter()
        .take(MAX_NAMED_NETWORKS)
        .map(ToString::to_string)
        .collect();
    let more = networks.len().saturating_sub(MAX_NAMED_NETWORKS);
    if more == 0 {
        return named.join(", ");
    }
    format!("{} and {more} more", named.join(", "))
}
