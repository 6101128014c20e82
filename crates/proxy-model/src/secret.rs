//! Redaction of secrets in displayed settings.

use http::{HeaderName, HeaderValue};
use proxy_routing::{HeaderCondition, QueryCondition};

/// Replaces a secret value.
pub(crate) const REDACTED: &str = "(redacted)";

/// `name: value`, with the value redacted if the name is a secret's.
pub fn redacted_field(name: &HeaderName, value: &HeaderValue) -> String {
    if value.is_sensitive() || is_secret_name(name.as_str()) {
        return format!("{name}: {REDACTED}");
    }
    format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
}

/// A header condition, with the value redacted if the name is a secret's.
pub fn redacted_header(condition: &HeaderCondition) -> String {
    let name = condition.name();
    let value = condition.value();
    value.map_or_else(|| name.to_string(), |value| redacted_field(name, value))
}

/// A query condition, with the value redacted if the name is a secret's.
pub fn redacted_parameter(condition: &QueryCondition) -> String {
    if condition.value().is_some() && is_secret_name(&condition.name().to_ascii_lowercase()) {
        return format!("{}={REDACTED}", condition.name());
    }
    condition.to_string()
}

/// Returns true if values of header fields and parameters of this name, in lower case, are secret:
/// it contains `auth`, `cookie`, `credential`, `key`, `password`, `secret`, `session` or `token`.
///
/// Recorded requests have each name checked: for names this short, `str::contains` spends most of
/// its time on the preparation of a search for each word.
pub fn is_secret_name(name: &str) -> bool {
    let mut rest = name.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let begins_word = match first {
            b'a' => rest.starts_with(b"auth"),
            b'c' => rest.starts_with(b"cookie") || rest.starts_with(b"credential"),
            b'k' => rest.starts_with(b"key"),
            b'p' => rest.starts_with(b"password"),
            b's' => rest.starts_with(b"secret") || rest.starts_with(b"session"),
            b't' => rest.starts_with(b"token"),
            _ => false,
        };
        if begins_word {
            return true;
        }
        rest = others;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET_WORDS: [&str; 8] = [
        "auth",
        "cookie",
        "credential",
        "key",
        "password",
        "secret",
        "session",
        "token",
    ];

    #[test]
    fn values_of_fields_that_carry_secrets_are_not_shown() {
        let value = HeaderValue::from_static("s3cret");
        for name in ["authorization", "x-api-key", "set-cookie", "x-vault-token"] {
            let name = HeaderName::from_static(name);
            assert_eq!(redacted_field(&name, &value), format!("{name}: (redacted)"));
        }
        let plain = HeaderName::from_static("x-env");
        assert_eq!(redacted_field(&plain, &value), "x-env: s3cret");
    }

    #[test]
    fn a_secret_word_anywhere_in_a_name_makes_it_secret() {
        for word in SECRET_WORDS {
            for name in [
                word.to_owned(),
                format!("x-{word}"),
                format!("{word}-id"),
                format!("xx{word}yy"),
            ] {
                assert!(is_secret_name(&name), "{name}");
            }
            assert!(!is_secret_name(&word[1..]), "{word}");
            assert!(!is_secret_name(&word[..word.len() - 1]), "{word}");
        }
        for name in ["", "accept", "user-agent", "host", "cook", "x-tok-en"] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn conditions_are_shown_without_secrets() {
        let header = |text| redacted_header(&HeaderCondition::parse(text).unwrap());
        assert_eq!(header("X-Api-Key: k-1"), "x-api-key: (redacted)");
        assert_eq!(header("X-Api-Key"), "x-api-key");
        let parameter = |text| redacted_parameter(&QueryCondition::parse(text).unwrap());
        assert_eq!(parameter("Access_Token=t-1"), "Access_Token=(redacted)");
        assert_eq!(parameter("token"), "token");
        assert_eq!(parameter("v=2"), "v=2");
    }
}
