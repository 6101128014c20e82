//! Choice of a client address that the networks of a route admit.

use crate::site::Policies;
use std::net::IpAddr;

/// Client of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Client {
    /// Every client, or at least one on the same machine.
    Any,
    /// A client with this address.
    Address(String),
}

/// Chooses a client that the networks admit; `None` if none is known.
pub(super) fn admitted_client(policies: &Policies) -> Option<Client> {
    let allowed = policies.allow.first();
    let address = allowed.map(|network| network.split('/').next().unwrap_or_default());
    let client: IpAddr = address.unwrap_or("127.0.0.1").parse().ok()?;
    let is_denied = policies
        .deny
        .iter()
        .any(|network| contains(network, client));
    (!is_denied).then(|| match address {
        Some(address) => Client::Address(address.to_owned()),
        None => Client::Any,
    })
}

/// Returns true if a network contains an address, or cannot be parsed.
fn contains(network: &str, address: IpAddr) -> bool {
    let (first, length) = network.split_once('/').unwrap_or((network, "128"));
    let Some((first, length)) = first.parse::<IpAddr>().ok().zip(length.parse::<u32>().ok()) else {
        return true;
    };
    let (first, address, bits) = match (first, address) {
        (IpAddr::V4(first), IpAddr::V4(address)) => (
            u128::from(first.to_bits()),
            u128::from(address.to_bits()),
            32,
        ),
        (IpAddr::V6(first), IpAddr::V6(address)) => (first.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    let rest = bits - length.min(bits);
    let prefix = |it: u128| it.checked_shr(rest).unwrap_or(0);
    prefix(first) == prefix(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_outside_of_denied_networks_is_chosen() {
        let address = |text: &str| Client::Address(text.to_owned());
        for (allow, deny, expected) in [
            ("", "", Some(Client::Any)),
            ("10.0.0.0/8", "", Some(address("10.0.0.0"))),
            ("10.0.0.0/8", "10.0.0.0/16", None),
            ("10.0.0.0/8", "10.1.0.0/16", Some(address("10.0.0.0"))),
            ("", "0.0.0.0/0", None),
            ("", "127.0.0.1", None),
            ("", "::/0", Some(Client::Any)),
            ("2001:db8::/32", "2001:db8::/48", None),
        ] {
            let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            let policies = Policies {
                allow: list(allow),
                deny: list(deny),
                ..Policies::default()
            };
            assert_eq!(admitted_client(&policies), expected, "{allow} {deny}");
        }
    }
}
