//! Rewriting of `Location` and `Set-Cookie` in responses back to the client's paths and host.

use http::header::{CONTENT_LOCATION, HOST, LOCATION, SET_COOKIE};
use http::{HeaderMap, HeaderValue};
use proxy_model::HeaderEdits;
use proxy_plan::RewritePlan;

/// The client's and the upstream's names for the same host.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    /// Scheme and host as the client wrote them: `https://www.example.com`.
    pub(super) origin: &'a str,
    /// The host that the route sets for the upstream, if it does.
    pub(super) set_host: Option<&'a str>,
    /// The target's own host and port.
    pub(super) target: &'a str,
}

impl Names<'_> {
    fn client_host(&self) -> &str {
        self.origin.split_once("://").map_or("", |(_, host)| host)
    }

    /// Returns true if `host` in a URL of `scheme` is a name of the upstream and not the client's.
    fn is_upstream(&self, scheme: &str, host: &str) -> bool {
        let is_same = |name: &str| is_same_host(scheme, name, host);
        let names = [self.set_host.unwrap_or_default(), self.target];
        // Browsers read another host out of `///host`.
        !host.is_empty() && !is_same(self.client_host()) && names.into_iter().any(is_same)
    }
}

/// Compares two hosts of URLs, with or without the scheme's own port.
fn is_same_host(scheme: &str, one: &str, other: &str) -> bool {
    let port = if scheme.eq_ignore_ascii_case("https") {
        ":443"
    } else {
        ":80"
    };
    let [one, other] = [one, other].map(|host| host.strip_suffix(port).unwrap_or(host));
    one.eq_ignore_ascii_case(other)
}

pub(super) fn set_host(edits: &HeaderEdits) -> Option<&str> {
    let mut set = edits.set.iter();
    set.find(|field| field.name == HOST)?
        .value
        .value
        .to_str()
        .ok()
}

/// Rewrites header fields of a response back to the client's view, by the route's settings.
pub(super) fn apply(rewrite: &RewritePlan, names: Names<'_>, headers: &mut HeaderMap) {
    if rewrite.location {
        for name in [LOCATION, CONTENT_LOCATION] {
            let value = headers.get(&name);
            let value = value.and_then(|value| str::from_utf8(value.as_bytes()).ok());
            let back = value.and_then(|value| location(rewrite, names, value));
            if let Some(back) = back.and_then(|back| HeaderValue::try_from(back).ok()) {
                headers.insert(name, back);
            }
        }
    }
    if rewrite.cookies && headers.contains_key(SET_COOKIE) {
        let written = headers.get_all(SET_COOKIE).iter();
        let cookies: Vec<HeaderValue> = written
            .map(|cookie| cookie_back(rewrite, names, cookie).unwrap_or_else(|| cookie.clone()))
            .collect();
        headers.remove(SET_COOKIE);
        for cookie in cookies {
            headers.append(SET_COOKIE, cookie);
        }
    }
}

/// The URL for the client; `None` if it is unchanged.
fn location(rewrite: &RewritePlan, names: Names<'_>, value: &str) -> Option<String> {
    if let Some(rest) = value.strip_prefix("//") {
        return location_without_scheme(rewrite, names, rest);
    }
    if value.starts_with('/') {
        return path_back(rewrite, value);
    }
    let (scheme, rest) = value.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, written) = rest.split_at(end);
    // A URL without a path means the root.
    let root = if written.starts_with('/') { "" } else { "/" };
    let path = path_back(rewrite, &format!("{root}{written}"));
    if names.is_upstream(scheme, host) {
        let path = path.unwrap_or_else(|| written.to_owned());
        return Some(format!("{}{path}", names.origin));
    }
    let is_client = is_same_host(scheme, names.client_host(), host);
    let path = path.filter(|_| is_client)?;
    Some(format!("{scheme}://{host}{path}"))
}

/// Like [`location`], for a URL without a scheme; `rest` follows its `//`. The client's scheme
/// stays: the upstream's URL may have any.
fn location_without_scheme(rewrite: &RewritePlan, names: Names<'_>, rest: &str) -> Option<String> {
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (host, _) = rest.split_at(end);
    let mut schemes = ["http", "https"].into_iter();
    let called = schemes.find(|scheme| names.is_upstream(scheme, host));
    let client = names.origin.split_once("://").map_or("", |(own, _)| own);
    let url = format!("{}://{rest}", called.unwrap_or(client));
    let back = location(rewrite, names, &url)?;
    let (_, rest) = back.split_once("://")?;
    Some(format!("//{rest}"))
}

/// The path for the client, with query and fragment; `None` if it is unchanged.
fn path_back(rewrite: &RewritePlan, target: &str) -> Option<String> {
    let end = target.find(['?', '#']).unwrap_or(target.len());
    let (path, rest) = target.split_at(end);
    let back = rewrite.inverse.as_ref()?.apply(path)?;
    Some(format!("{back}{rest}"))
}

/// The cookie for the client; `None` if it is unchanged.
fn cookie_back(
    rewrite: &RewritePlan,
    names: Names<'_>,
    cookie: &HeaderValue,
) -> Option<HeaderValue> {
    let cookie = str::from_utf8(cookie.as_bytes()).ok()?;
    let mut parts = cookie.split(';');
    let mut back = parts.next()?.to_owned();
    // Browsers refuse a cookie of this name with another path than `/`.
    let prefix = back.trim_start().get(.."__Host-".len());
    let is_for_root = prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case("__Host-"));
    for part in parts {
        let (name, value) = part.split_once('=').unwrap_or((part, ""));
        let (name, value) = (name.trim(), value.trim());
        if name.eq_ignore_ascii_case("domain") && is_domain_of(names, value) {
            continue;
        }
        let has_path = name.eq_ignore_ascii_case("path") && !is_for_root;
        let path = has_path.then(|| cookie_path_back(rewrite, value)).flatten();
        if let Some(path) = path {
            back.push_str("; Path=");
            back.push_str(&path);
        } else {
            back.push(';');
            back.push_str(part);
        }
    }
    HeaderValue::try_from(back).ok()
}

/// The path of a cookie for the client. The root becomes `/api`, which covers `/api/` too. [RFC
/// 6265 §5.1.4]
fn cookie_path_back(rewrite: &RewritePlan, path: &str) -> Option<String> {
    let mut back = path_back(rewrite, path)?;
    if path == "/" && back.len() > 1 && back.ends_with('/') {
        back.pop();
    }
    Some(back)
}

/// Returns true if `domain` is the upstream's, without the port of its name.
fn is_domain_of(names: Names<'_>, domain: &str) -> bool {
    let domain = domain.trim_start_matches('.');
    let without_port = |host: &str| -> String {
        match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name.to_owned(),
            Some(_) | None => host.to_owned(),
        }
    };
    let known = [names.set_host.unwrap_or_default(), names.target];
    let client = names.origin.split_once("://").map_or("", |(_, host)| host);
    let is_client = without_port(client).eq_ignore_ascii_case(domain);
    let mut known = known.iter().map(|host| without_port(host));
    !is_client && known.any(|host| host.eq_ignore_ascii_case(domain))
}
