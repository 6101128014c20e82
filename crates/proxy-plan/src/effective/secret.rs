//! What must not be shown, wherever settings and requests are.

use http::{HeaderName, HeaderValue};

/// Stands where a secret was.
const HIDDEN: &str = "(hidden)";

/// Parts of the names of header fields and query parameters that carry secrets.
const SECRET: [&str; 8] = [
    "auth",
    "cookie",
    "token",
    "secret",
    "password",
    "key",
    "credential",
    "session",
];

/// `name: value`, without the value if it may be a secret.
pub(super) fn shown_field(name: &HeaderName, value: &HeaderValue) -> String {
    if value.is_sensitive() || is_secret(name.as_str()) {
        return format!("{name}: {HIDDEN}");
    }
    format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
}

/// `name=value`, without the value if it may be a secret.
pub(super) fn shown_parameter(name: &str, value: &str) -> String {
    let secret = is_secret(&name.to_ascii_lowercase());
    format!("{name}={}", if secret { HIDDEN } else { value })
}

fn is_secret(name: &str) -> bool {
    SECRET.iter().any(|part| name.contains(part))
}

/// `url` without the name and password that may stand before its host.
pub(super) fn without_userinfo(url: &str) -> String {
    let start = url.find("://").map_or(0, |at| at + 3);
    let (scheme, rest) = url.split_at(start);
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    match authority.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}{HIDDEN}@{host}{path}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_fields_that_carry_secrets_are_hidden() {
        let value = HeaderValue::from_static("s3cret");
        for name in ["authorization", "x-api-key", "cookie", "x-vault-token"] {
            let name = HeaderName::from_static(name);
            assert_eq!(shown_field(&name, &value), format!("{name}: (hidden)"));
        }
        let plain = HeaderName::from_static("x-env");
        assert_eq!(shown_field(&plain, &value), "x-env: s3cret");
        assert_eq!(
            shown_parameter("Access_Token", "s3cret"),
            "Access_Token=(hidden)"
        );
        assert_eq!(shown_parameter("v", "2"), "v=2");
    }

    #[test]
    fn a_password_in_a_url_is_hidden_and_an_at_in_its_path_is_kept() {
        let cases = [
            ("https://a:b@c.example/x", "https://(hidden)@c.example/x"),
            ("https://c.example/@x", "https://c.example/@x"),
            ("https://c.example", "https://c.example"),
        ];
        for (url, shown) in cases {
            assert_eq!(without_userinfo(url), shown);
        }
    }
}
