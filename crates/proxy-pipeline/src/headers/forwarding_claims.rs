//! Forwarding claims: header fields that report the client, the proxies on the path, or the target
//! to an upstream.
//!
//! An upstream that trusts such a field trusts its sender. Claims of untrusted peers are therefore
//! removed, claims of trusted peers are forwarded. `docs/reference/forwarding-headers.md` has the
//! same list.

use crate::headers::names;
use http::{HeaderMap, HeaderName};
use std::borrow::Cow;

/// All names with this prefix are on the list: `X-Forwarded-For`, `-Port`, `-Prefix`, `-Ssl` and
/// similar.
const FAMILY: &str = "x-forwarded";

/// Returns true if `name`, in lower case, is on the list.
pub(crate) fn is_claim(name: &str) -> bool {
    matches!(
        name,
        "cf-connecting-ip"
            | "cf-connecting-ipv6"
            | "client-ip"
            | "fastly-client-ip"
            | "forwarded"
            | "front-end-https"
            | "proxy"
            | "proxy-client-ip"
            | "true-client-ip"
            | "via"
            | "wl-proxy-client-ip"
            | "x-appengine-user-ip"
            | "x-azure-clientip"
            | "x-client-ip"
            | "x-cluster-client-ip"
            | "x-envoy-external-address"
            | "x-host"
            | "x-http-destinationurl"
            | "x-http-host-override"
            | "x-original-for"
            | "x-original-forwarded-for"
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

/// Returns true if upstreams may read `name` as another name: one on the list, or the correlation
/// ID's.
pub(crate) fn is_shadow(name: &str) -> bool {
    if !may_be_claim(name.as_bytes()) || !has_other_sign(name) {
        return false;
    }
    let plain = plain_name(name);
    is_claim(&plain) || plain == names::CORRELATION_ID.as_str()
}

/// Returns true if upstreams may read `name`, in any case, as one on the list: it is on the list,
/// or a shadow.
#[inline]
pub(crate) fn is_read_as_claim(name: &[u8]) -> bool {
    may_be_claim(name) && is_claim_in_lower_case(name)
}

fn is_claim_in_lower_case(name: &[u8]) -> bool {
    let name = if name.iter().any(u8::is_ascii_uppercase) {
        Cow::Owned(name.to_ascii_lowercase())
    } else {
        Cow::Borrowed(name)
    };
    str::from_utf8(&name).is_ok_and(|name| is_claim(name) || is_shadow(name))
}

/// Returns true if `name`, in any case, has the first two letters of some name on the list, or `x`
/// and a sign; rejects most names quickly.
#[inline]
fn may_be_claim(name: &[u8]) -> bool {
    let [first, second, ..] = name else {
        return false;
    };
    match (first.to_ascii_lowercase(), second.to_ascii_lowercase()) {
        (b'c', b'f' | b'l')
        | (b'f', b'a' | b'o' | b'r')
        | (b'p' | b't', b'r')
        | (b'v', b'i')
        | (b'w', b'l') => true,
        (b'x', sign) => !sign.is_ascii_alphanumeric(),
        _ => false,
    }
}

/// `name` with `-` for every other sign: CGI and its successors map them all to one, so that
/// `x_user` and `x.user` are the same variable as `x-user`.
pub(crate) fn plain_name(name: &str) -> Cow<'_, str> {
    if !has_other_sign(name) {
        return Cow::Borrowed(name);
    }
    let is_sign = |byte: char| !byte.is_ascii_alphanumeric();
    Cow::Owned(name.replace(is_sign, "-"))
}

/// Returns true if `name` has a sign other than `-`.
pub(crate) fn has_other_sign(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.any(|byte| !byte.is_ascii_alphanumeric() && byte != b'-')
}

/// Removes the fields with names that upstreams read like `name`, except `name` itself.
pub(crate) fn remove_alike(headers: &mut HeaderMap, name: &str) {
    while let Some(alike) = headers.keys().find(|other| is_alike(other.as_str(), name)) {
        let alike = alike.clone();
        headers.remove(alike);
    }
}

/// Returns true if two names differ only in their separators.
fn is_alike(name: &str, other: &str) -> bool {
    let is_same =
        |(a, b): (u8, u8)| a == b || !(a.is_ascii_alphanumeric() || b.is_ascii_alphanumeric());
    name.len() == other.len() && name != other && name.bytes().zip(other.bytes()).all(is_same)
}

/// Removes the fields on the list of claims unless their sender is trusted, and always their
/// variants with another character in place of `-`.
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
    fn names_of_the_list_are_distinguished_from_similar_ones() {
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
            ("x.forwarded!for", false, true),
            ("proxy", true, false),
            ("proxy-client-ip", true, false),
            ("proxy-authorization", false, false),
            ("wl-proxy-client-ip", true, false),
            ("wl_proxy_client_ip", false, true),
            ("x-original-forwarded-for", true, false),
            ("x_original_forwarded_for", false, true),
        ] {
            assert_eq!((is_claim(name), is_shadow(name)), (claim, shadow), "{name}");
            assert_eq!(is_read_as_claim(name.as_bytes()), claim || shadow, "{name}");
        }
    }

    #[test]
    fn fields_with_equivalent_names_are_removed_and_the_exact_name_stays() {
        let mut headers = HeaderMap::new();
        for name in ["x-user", "x_user", "x.user", "x-users", "x-uses", "xauser"] {
            headers.insert(
                HeaderName::from_static(name),
                http::HeaderValue::from_static("1"),
            );
        }

        remove_alike(&mut headers, "x-user");

        let mut kept: Vec<_> = headers.keys().map(HeaderName::as_str).collect();
        kept.sort_unstable();
        assert_eq!(kept, ["x-user", "x-users", "x-uses", "xauser"]);
    }

    #[test]
    fn every_listed_name_passes_the_prefilter() {
        let source = include_str!("forwarding_claims.rs");
        let page = include_str!("../../../../docs/reference/forwarding-headers.md").to_lowercase();
        let listed = source.lines().filter_map(|line| {
            let word = line.trim().trim_start_matches("| ");
            let word = word.strip_prefix('"')?.strip_suffix('"')?;
            let is_name = |byte: u8| byte.is_ascii_lowercase() || byte == b'-' || byte == b'6';
            word.bytes().all(is_name).then_some(word)
        });
        let mut count = 0;
        for name in listed {
            assert!(
                is_claim(name) && is_read_as_claim(name.as_bytes()),
                "{name}"
            );
            let capitals = name.to_ascii_uppercase();
            assert!(is_read_as_claim(capitals.as_bytes()), "{capitals}");
            assert!(
                page.contains(&format!("`{name}`")),
                "{name} is not on its page"
            );
            count += 1;
        }
        assert_eq!(count, 36);
    }
}
