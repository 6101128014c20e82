//! The target of a request, and its URL in normal form.

use std::borrow::Cow;
use std::net::Ipv6Addr;

/// The target of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyTarget<'r> {
    /// `http` or `https`, as the client used it.
    pub scheme: &'r str,
    /// The host with its port, as sent.
    pub host: &'r str,
    /// The path, from its first `/`.
    pub path: &'r str,
    /// The query without its `?`.
    pub query: Option<&'r str>,
}

impl<'r> KeyTarget<'r> {
    /// The target that an absolute URL names, without its fragment; `None` for another scheme, and
    /// for a relative reference.
    #[must_use]
    pub fn from_url(url: &'r str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let scheme = ["http", "https"]
            .into_iter()
            .find(|known| known.eq_ignore_ascii_case(scheme))?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (host, rest) = rest.split_at_checked(end)?;
        let reference = rest.split('#').next().unwrap_or_default();
        let (path, query) = match reference.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (reference, None),
        };
        Some(Self {
            scheme,
            host,
            // An empty path is `/`. [RFC 9110 §4.2.3]
            path: if path.is_empty() { "/" } else { path },
            query,
        })
    }

    /// Scheme and host in normal form: equal for equivalent origins. [RFC 9110 §4.2.3]
    #[must_use]
    pub fn origin(&self) -> String {
        let Self { scheme, host, .. } = *self;
        format!("{scheme}://{}", normal_authority(scheme, host))
    }

    /// Returns true if the target makes an unambiguous URL.
    #[must_use]
    pub fn is_usable(&self) -> bool {
        let is_of_host = |byte: u8| byte.is_ascii_graphic() && !b"/?#@\\\"<>".contains(&byte);
        !self.host.is_empty() && self.host.bytes().all(is_of_host) && self.path.starts_with('/')
    }

    /// The URL in normal form, without the query parameters called `ignored`. A parameter that
    /// contains `;` or `?` stays: some upstreams read several parameters there, and a client could
    /// hide a further one behind an ignored name.
    ///
    /// Equivalent URLs are equal: by host and port, and by escapes of path and query that stand for
    /// unreserved characters. Dots of a path are not resolved. [RFC 9110 §4.2.3, RFC 3986 §6.2.2]
    #[must_use]
    pub fn url(&self, ignored: &[String]) -> String {
        let reference = self.reference(ignored);
        self.origin() + &normal_escapes(&reference)
    }

    /// The URL with its host in lower case, and else as sent, without the parameters called
    /// `ignored`; `None` if it is in normal form.
    pub(crate) fn variant(&self, ignored: &[String]) -> Option<String> {
        let Self {
            scheme,
            host,
            path,
            query,
        } = *self;
        let has_escapes = path.contains('%') || query.is_some_and(|query| query.contains('%'));
        if !has_escapes && !has_variants(host) {
            return None;
        }
        let reference = self.reference(ignored);
        let sent = format!("{scheme}://{}{reference}", host.to_ascii_lowercase());
        (sent != self.url(ignored)).then_some(sent)
    }

    /// Path and query without the parameters called `ignored`.
    fn reference(&self, ignored: &[String]) -> String {
        let Self { path, query, .. } = *self;
        let mut reference = String::with_capacity(path.len() + query.map_or(0, str::len) + 1);
        reference.push_str(path);
        let Some(query) = query else {
            return reference;
        };
        if ignored.is_empty() {
            reference.push('?');
            reference.push_str(query);
            return reference;
        }
        let mut sign = '?';
        for pair in query.split('&').filter(|pair| !is_ignored(pair, ignored)) {
            reference.push(sign);
            reference.push_str(pair);
            sign = '&';
        }
        reference
    }
}

/// `authority` in lower case, without the port that is the scheme's default, without the dot of a
/// complete name, and with the short form of an IPv6 address: as routes compare hosts.
fn normal_authority(scheme: &str, authority: &str) -> String {
    let lower = authority.to_ascii_lowercase();
    if !has_variants(&lower) {
        return lower;
    }
    let (name, port) = match lower.rsplit_once(':') {
        Some((name, digits)) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
            (name, Some(digits))
        }
        Some(_) | None => (&*lower, None),
    };
    let name = normal_name(name);
    let default = if scheme == "https" { 443 } else { 80 };
    let Some(digits) = port.filter(|digits| !digits.is_empty()) else {
        return name.into_owned();
    };
    match digits.parse::<u16>() {
        Ok(port) if port == default => name.into_owned(),
        Ok(port) => format!("{name}:{port}"),
        Err(_) => lower.clone(),
    }
}

/// Returns true unless lower case is the normal form.
fn has_variants(authority: &str) -> bool {
    authority.contains(':') || authority.ends_with('.')
}

fn normal_name(name: &str) -> Cow<'_, str> {
    let address = name
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .and_then(|text| text.parse::<Ipv6Addr>().ok());
    match address {
        Some(address) => Cow::Owned(format!("[{address}]")),
        None => Cow::Borrowed(name.strip_suffix('.').unwrap_or(name)),
    }
}

/// `text` with upper case in escapes, and without escapes of unreserved characters.
fn normal_escapes(text: &str) -> Cow<'_, str> {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default();
    if first.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let mut normal = String::with_capacity(text.len());
    normal.push_str(first);
    for part in parts {
        let escape = part
            .split_at_checked(2)
            .filter(|(digits, _)| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let Some((digits, after)) = escape else {
            normal.push('%');
            normal.push_str(part);
            continue;
        };
        if let Ok(unreserved @ ('a'..='z' | 'A'..='Z' | '0'..='9' | '-' | '.' | '_' | '~')) =
            u8::from_str_radix(digits, 16).map(char::from)
        {
            normal.push(unreserved);
        } else {
            normal.push('%');
            normal.push_str(&digits.to_ascii_uppercase());
        }
        normal.push_str(after);
    }
    Cow::Owned(normal)
}

fn is_ignored(pair: &str, ignored: &[String]) -> bool {
    let name = pair.split('=').next().unwrap_or_default();
    !pair.contains([';', '?']) && ignored.iter().any(|one| one == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(query: Option<&str>, ignored: &[&str]) -> String {
        let target = KeyTarget {
            scheme: "https",
            host: "A.example:8443",
            path: "/x",
            query,
        };
        let ignored: Vec<String> = ignored.iter().map(|&name| name.to_owned()).collect();
        target.url(&ignored)
    }

    #[test]
    fn only_the_host_and_the_ignored_parameters_are_changed() {
        assert_eq!(url(None, &[]), "https://a.example:8443/x");
        assert_eq!(url(Some(""), &[]), "https://a.example:8443/x?");
        assert_eq!(url(Some("B=1&a"), &[]), "https://a.example:8443/x?B=1&a");
        let ignored = &["utm_source", "f"];
        assert_eq!(
            url(Some("utm_source=m&a=1&f&b=2"), ignored),
            "https://a.example:8443/x?a=1&b=2"
        );
        assert_eq!(url(Some("f=1"), ignored), "https://a.example:8443/x");
    }

    #[test]
    fn a_parameter_cannot_hide_behind_an_ignored_one() {
        for query in ["f=1;lang=x", "f;lang=x", "f=1?lang=x", "f[]=1"] {
            let kept = format!("https://a.example:8443/x?{query}");
            assert_eq!(url(Some(query), &["f"]), kept);
        }
        let escaped = url(Some("%66=1"), &["f"]);
        assert_eq!(escaped, "https://a.example:8443/x?f=1");
    }

    #[test]
    fn equivalent_hosts_have_one_url() {
        let url = |scheme, host| {
            let target = KeyTarget {
                scheme,
                host,
                path: "/x",
                query: None,
            };
            assert_eq!(target.url(&[]), format!("{}/x", target.origin()));
            target.url(&[])
        };
        for host in [
            "a.example",
            "A.example:443",
            "a.example:",
            "a.example:0443",
            "a.example.",
            "a.example.:443",
        ] {
            assert_eq!(url("https", host), "https://a.example/x", "{host}");
        }
        assert_eq!(url("http", "a.example:80"), "http://a.example/x");
        assert_eq!(url("http", "a.example:443"), "http://a.example:443/x");
        assert_eq!(url("https", "a.example:80"), "https://a.example:80/x");
        assert_eq!(url("https", "a.example:99999"), "https://a.example:99999/x");
        for host in ["[2001:db8::1]", "[2001:DB8:0::1]:443", "[2001:db8::1]:"] {
            assert_eq!(url("https", host), "https://[2001:db8::1]/x", "{host}");
        }
        assert_eq!(url("https", "[::1]:8443"), "https://[::1]:8443/x");
    }

    #[test]
    fn equivalent_escapes_have_one_url() {
        let url = |path, query| {
            let target = KeyTarget {
                scheme: "https",
                host: "a.example",
                path,
                query,
            };
            target.url(&[])
        };
        for (path, query, expected) in [
            ("/%7ex", None, "/~x"),
            ("/%41%2d%5f%2E", None, "/A-_."),
            ("/caf%c3%a9", None, "/caf%C3%A9"),
            ("/a%2fb%3F", Some("%26=%3d%20"), "/a%2Fb%3F?%26=%3D%20"),
            ("/%", Some("%4%zz%é"), "/%?%4%zz%é"),
        ] {
            let expected = format!("https://a.example{expected}");
            assert_eq!(url(path, query), expected, "{path}");
        }
    }

    #[test]
    fn a_url_is_read_as_a_target() {
        let read = |url| KeyTarget::from_url(url).map(|target| target.url(&[]));
        for (url, expected) in [
            ("HTTPS://A.example", "https://a.example/"),
            ("https://a.example:443?q#f", "https://a.example/?q"),
            (
                "http://a.example:81/News?a=/b#c?d",
                "http://a.example:81/News?a=/b",
            ),
        ] {
            assert_eq!(read(url).as_deref(), Some(expected), "{url}");
        }
        for url in ["/a", "ftp://a/", "//a.example/", "a.example", ""] {
            assert_eq!(read(url), None, "{url}");
        }
        assert!(
            !KeyTarget::from_url("https://u@a.example/")
                .unwrap()
                .is_usable()
        );
        assert!(!KeyTarget::from_url("https:///x").unwrap().is_usable());
    }

    #[test]
    fn a_host_that_could_be_a_path_makes_no_key() {
        for host in ["", "a/b", "a?b", "a#b", "u@a", "a b", "a\\b"] {
            let target = KeyTarget {
                scheme: "http",
                host,
                path: "/",
                query: None,
            };
            assert!(!target.is_usable(), "{host}");
        }
    }
}
