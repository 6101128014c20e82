//! The codings that a client accepts. [RFC 9110 §12.5.3]

use crate::coding::Coding;
use http::HeaderValue;
use http::header::{ACCEPT_ENCODING, HeaderMap};

/// The codings that a client accepts, best first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Accepted([Option<Coding>; 3]);

impl Accepted {
    /// Codings accepted by the `Accept-Encoding` of `headers`. Equal weights are ordered by
    /// `preferred`; an unlisted coding is not used.
    #[must_use]
    pub fn from_headers(headers: &HeaderMap, preferred: &[Coding]) -> Self {
        let lines = || headers.get_all(ACCEPT_ENCODING).iter();
        let any = weight(lines(), &["*"]).unwrap_or(0);
        let mut preferred = preferred.iter().copied();
        let mut taken = [(); 3].map(|()| {
            let coding = preferred.next();
            let weight = coding.and_then(|coding| weight(lines(), coding.names()));
            (weight.unwrap_or(any), coding)
        });
        taken.sort_by_key(|(weight, _)| std::cmp::Reverse(*weight));
        // `identity` has the quality listed for it, else 0.
        let plain = weight(lines(), &["identity"]).unwrap_or(0);
        let is_wanted = |weight: u16| weight > 0 && weight >= plain;
        Self(taken.map(|(weight, coding)| coding.filter(|_| is_wanted(weight))))
    }

    /// Best first.
    pub fn iter(self) -> impl Iterator<Item = Coding> {
        self.0.into_iter().flatten()
    }
}

/// The weight of the first listed name, in thousandths; 0 means refused.
fn weight<'v>(lines: impl Iterator<Item = &'v HeaderValue>, names: &[&str]) -> Option<u16> {
    let lines = lines.filter_map(|line| line.to_str().ok());
    lines.flat_map(|line| line.split(',')).find_map(|member| {
        let (name, parameters) = member.split_once(';').unwrap_or((member, ""));
        let is_named = |one: &&str| name.trim().eq_ignore_ascii_case(one);
        names.iter().any(is_named).then(|| quality(parameters))
    })
}

/// The weight among a member's parameters; a malformed one means refused.
fn quality(parameters: &str) -> u16 {
    let Some((name, value)) = parameters.split_once('=') else {
        return 1000;
    };
    if !name.trim().eq_ignore_ascii_case("q") {
        return 1000;
    }
    let (whole, fraction) = value.trim().split_once('.').unwrap_or((value.trim(), ""));
    let is_right = fraction.len() <= 3 && fraction.bytes().all(|byte| byte.is_ascii_digit());
    match whole {
        "1" if is_right => 1000,
        "0" if is_right => format!("{fraction:0<3}").parse().unwrap_or(0),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    #[test]
    fn the_coding_with_the_highest_weight_wins_and_zero_refuses() {
        for (value, names) in [
            ("gzip, deflate, br, zstd", "br zstd gzip"),
            ("gzip;q=1.0, br;q=0.5", "gzip br"),
            ("GZIP", "gzip"),
            ("x-gzip", "gzip"),
            ("*", "br zstd gzip"),
            ("*;q=0.1, gzip;q=0.2, br;q=0", "gzip zstd"),
            ("br;q=0.000, gzip;q=0", ""),
            ("br;q=2, gzip; q=high, zstd ; q=0.001", "zstd"),
            ("identity", ""),
            ("identity, gzip;q=0.5", ""),
            ("gzip, identity", "gzip"),
            ("identity;q=0.5, gzip;q=0.5, br;q=0.1", "gzip"),
            ("identity;q=0, gzip;q=0.1", "gzip"),
            ("*, identity;q=0.5", "br zstd gzip"),
            ("", ""),
            ("brotli", ""),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT_ENCODING, value.parse().unwrap());
            let taken: Vec<_> = Accepted::from_headers(&headers, &ALL)
                .iter()
                .map(Coding::name)
                .collect();
            assert_eq!(taken.join(" "), names, "{value}");
        }
        assert_eq!(
            Accepted::from_headers(&HeaderMap::new(), &ALL),
            Accepted::default()
        );
    }

    #[test]
    fn equal_weights_go_by_preference_and_others_are_not_taken() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("br, gzip, zstd"));
        let taken = Accepted::from_headers(&headers, &[Coding::Gzip, Coding::Brotli]);
        assert_eq!(
            taken.iter().collect::<Vec<_>>(),
            [Coding::Gzip, Coding::Brotli]
        );
    }
}
