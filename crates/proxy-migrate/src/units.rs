//! Parsing of times, sizes and networks in other servers' notations.

use std::net::IpAddr;

/// Parses a time to milliseconds: `60`, `60s`, `1m`, `500ms`, `1h30m`. A number alone is in units
/// of `unit_ms`.
pub(crate) fn milliseconds(text: &str, unit_ms: u64) -> Option<u64> {
    let mut rest = text.trim();
    let mut total = 0_u64;
    while !rest.is_empty() {
        let digits = rest
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| !c.is_ascii_alphabetic());
        let (unit, next) = after.split_at(letters.unwrap_or(after.len()));
        let per = match unit {
            "" => unit_ms,
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        let part = number.parse::<u64>().ok()?.checked_mul(per)?;
        total = total.checked_add(part)?;
        rest = next.trim_start();
    }
    (!text.trim().is_empty()).then_some(total)
}

/// Parses a size to bytes: `1024`, `8k`, `10m`, `10MB`, `1g`, all with binary prefixes as in nginx.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(digits);
    let per = match unit.trim() {
        "" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(per)
}

/// Parses a size to bytes as in Caddy: `10MB` with decimal prefixes, `10MiB` with binary ones.
pub(crate) fn decimal_bytes(text: &str) -> Option<u64> {
    let lower = text.trim().to_ascii_lowercase();
    let per = match lower
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .trim()
    {
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        _ => return bytes(text),
    };
    let number = lower.trim_end_matches(|c: char| !c.is_ascii_digit());
    number.parse::<u64>().ok()?.checked_mul(per)
}

/// Timeout of a probe, limited to the interval: a longer one would overlap with the next probe.
pub(crate) fn probe_timeout(interval_ms: Option<u64>, timeout_ms: Option<u64>) -> Option<u64> {
    let interval = interval_ms.unwrap_or(10_000);
    let timeout = timeout_ms.unwrap_or(5_000);
    if timeout > interval {
        Some(interval)
    } else {
        timeout_ms
    }
}

/// Returns true if a word is an IP address or a network.
pub(crate) fn is_network(word: &str) -> bool {
    let (address, length) = match word.split_once('/') {
        Some((address, length)) => (address, length.parse::<u8>().ok()),
        None => (word, Some(0)),
    };
    let bits = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return false,
    };
    length.is_some_and(|length| length <= bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        for (text, expected) in [
            ("60", Some(60_000)),
            ("500ms", Some(500)),
            ("1h30m", Some(5_400_000)),
            ("1h 30m", Some(5_400_000)),
            ("2d", Some(172_800_000)),
            ("", None),
            ("x", None),
            ("5w", None),
        ] {
            assert_eq!(milliseconds(text, 1_000), expected, "{text}");
        }
    }

    #[test]
    fn sizes_have_binary_units() {
        for (text, expected) in [
            ("10m", Some(10 << 20)),
            ("8K", Some(8 << 10)),
            ("1g", Some(1 << 30)),
            ("10MB", Some(10 << 20)),
            ("7", Some(7)),
            ("", None),
            ("7x", None),
        ] {
            assert_eq!(bytes(text), expected, "{text}");
        }
    }
}
