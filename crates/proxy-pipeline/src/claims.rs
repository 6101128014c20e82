//! The list of header fields that tell an upstream the client, the proxies on the way, or the
//! target.
//!
//! An upstream that trusts such a field trusts its sender. So those of untrusted peers are removed,
//! and those of trusted peers are passed on. `docs/reference/forwarding-headers.md` has the same
//! list.

use crate::names;
use http::{HeaderMap, HeaderName};

/// All names with this prefix are on the list: `X-Forwarded-For`, `-Port`, `-Prefix`, `-Ssl` and
/// similar.
const FAMILY: &str = "x-forwarded";

/// Whether `name`, in lower case, is on the list.
pub(crate) fn is_claim(name: &str) -> bool {
    matches!(
        name,
        "cf-connecting-ip"
            | "cf-connecting-ipv6"
            | "client-ip"
            | "fastly-client-ip"
            | "forwarded"
            | "front-end-https"
            | "true-client-ip"
            | "via"
            | "x-appengine-user-ip"
            | "x-azure-clientip"
            | "x-client-ip"
            | "x-cluster-client-ip"
            | "x-envoy-external-address"
            | "x-host"
            | "x-http-destinationurl"
            | "x-http-host-override"
            | "x-original-for"
            | "x-original-host"
            | "x-original-method"
            | "x-original-proto"
            | "x-original-uri"
            | "x-original-url"
            | "x-originating-ip"
            | "x-proxyuser-ip"
            | "x-real-ip"
            | "x-real-port"
            | "x-remote-addr"
            | "x-remote-ip"
            | "x-rewrite-uri"
            | "x-rewrite-url"
            | "x-scheme"
            | "x-url-scheme"
    ) || in_family(name)
}

fn in_family(name: &str) -> bool {
    let rest = name.strip_prefix(FAMILY);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
}

/// Whether it is a name on the list, or that of the correlation ID, with `_` in place of `-`: CGI
/// and its successors map both to the same variable.
pub(crate) fn is_shadow(name: &str) -> bool {
    if !may_be_claim(name) || !name.contains('_') {
        return false;
    }
    let plain = name.replace('_', "-");
    is_claim(&plain) || plain == names::CORRELATION_ID.as_str()
}

/// Whether `name` has a prefix of some name on the list; rejects most names quickly.
#[inline]
pub(crate) fn may_be_claim(name: &str) -> bool {
    matches!(name.as_bytes(), [b'c' | b'f' | b't' | b'v' | b'x', ..])
}

/// Removes the fields on the list of claims unless their sender is `believed`, and always those
/// with `_` in place of `-`.
#[cold]
pub(crate) fn remove_claims(headers: &mut HeaderMap, believed: bool) {
    let dropped = |name: &HeaderName| {
        let name = name.as_str();
        !believed && is_claim(name) || is_shadow(name)
    };
    let names = headers.keys().filter(|name| dropped(name));
    let names: Vec<HeaderName> = names.cloned().collect();
    for name in names {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_the_list_are_told_from_their_neighbours() {
        for (name, claim, shadow) in [
            ("x-forwarded", true, false),
            ("x-forwarded-anything", true, false),
            ("x-forwardedness", false, false),
            ("x-real-ip", true, false),
            ("x_real_ip", false, true),
            ("x-real_ip", false, true),
            ("true_client_ip", false, true),
            ("front_end_https", false, true),
            ("x_correlation_id", false, true),
            ("x-correlation-id", false, false),
            ("x_requested_with", false, false),
            ("x-requested-with", false, false),
            ("user_agent", false, false),
            ("client-ip", true, false),
            ("client-ips", false, false),
        ] {
            assert_eq!((is_claim(name), is_shadow(name)), (claim, shadow), "{name}");
        }
    }

    #[test]
    fn every_name_of_the_list_passes_the_quick_look() {
        let source = include_str!("claims.rs");
        let page = include_str!("../../../docs/reference/forwarding-headers.md").to_lowercase();
        let listed = source.lines().filter_map(|line| {
            let word = line.trim().trim_start_matches("| ");
            let word = word.strip_prefix('"')?.strip_suffix('"')?;
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'6';
            word.bytes().all(is_name).then_some(word)
        });
        let mut count = 0;
        for name in listed {
            assert!(is_claim(name) && may_be_claim(name), "{name}");
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not on its page"
            );
            count += 1;
        }
        assert_eq!(count, 32);
    }
}
