//! Clients of a route with lists of networks.

use crate::site::Policies;
use std::net::IpAddr;

/// The address of a client that a route serves, `Some(None)` for any; `None` if it is not known.
#[expect(clippy::option_option, reason = "no client, any client, one client")]
pub(super) fn client(policies: &Policies) -> Option<Option<String>> {
    let allowed = policies.allow.first();
    let address = allowed.map(|network| network.split('/').next().unwrap_or_default());
    let client: IpAddr = address.unwrap_or("127.0.0.1").parse().ok()?;
    let is_denied = policies.deny.iter().any(|network| holds(network, client));
    (!is_denied).then(|| address.map(str::to_owned))
}

/// Returns true if an address is in a network; a network that cannot be read may hold it.
fn holds(network: &str, address: IpAddr) -> bool {
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
    let begins = |it: u128| it.checked_shr(rest).unwrap_or(0);
    begins(first) == begins(address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_denied_client_is_none() {
        for (allow, deny, expected) in [
            ("", "", Some(None)),
            ("10.0.0.0/8", "", Some(Some("10.0.0.0"))),
            ("10.0.0.0/8", "10.0.0.0/16", None),
            ("10.0.0.0/8", "10.1.0.0/16", Some(Some("10.0.0.0"))),
            ("", "0.0.0.0/0", None),
            ("", "127.0.0.1", None),
            ("", "::/0", Some(None)),
            ("2001:db8::/32", "2001:db8::/48", None),
        ] {
            let list = |text: &str| text.split_whitespace().map(str::to_owned).collect();
            let policies = Policies {
                allow: list(allow),
                deny: list(deny),
                ..Policies::default()
            };
            let client = client(&policies);
            let client = client.as_ref().map(|client| client.as_deref());
            assert_eq!(client, expected, "{allow} {deny}");
        }
    }
}
