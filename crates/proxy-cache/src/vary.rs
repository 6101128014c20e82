//! Selection of a stored response by the request fields that `Vary` names. [RFC 9111 §4.1]

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, VARY};
use http::{HeaderMap, HeaderName};

/// Maximum number of names of a variant.
const MAX_NAMES: usize = 8;
/// Maximum length of the values of a variant, in bytes.
const MAX_VALUE_BYTES: usize = 2_048;

/// The request fields that select a stored response, with their values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variant {
    names: Box<[HeaderName]>,
    values: Box<[u8]>,
}

/// The reason why a response has no usable variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VaryError {
    /// `Vary` is `*`: the response depends on more than the request's fields.
    Any,
    /// `Vary` has too many names or is unreadable, or the values are too long.
    TooLarge,
}

impl Variant {
    /// The variant of `response` to a request with the fields `request`.
    pub(crate) fn read(request: &HeaderMap, response: &HeaderMap) -> Result<Self, VaryError> {
        let mut names: Vec<HeaderName> = Vec::new();
        for field in response.get_all(VARY) {
            let list = field.to_str().map_err(|_| VaryError::TooLarge)?;
            for name in list
                .split(',')
                .map(str::trim)
                .filter(|name| !name.is_empty())
            {
                if name == "*" {
                    return Err(VaryError::Any);
                }
                let name = HeaderName::from_bytes(name.as_bytes());
                let name = name.map_err(|_| VaryError::TooLarge)?;
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        // A content coding requires a client that accepts it, even if the upstream's `Vary` omits
        // it.
        if response.contains_key(CONTENT_ENCODING) && !names.contains(&ACCEPT_ENCODING) {
            names.push(ACCEPT_ENCODING);
        }
        if names.len() > MAX_NAMES {
            return Err(VaryError::TooLarge);
        }
        names.sort_unstable_by(|one, other| one.as_str().cmp(other.as_str()));
        let variant = Self::from_names(names.into(), request);
        if variant.values.len() > MAX_VALUE_BYTES {
            return Err(VaryError::TooLarge);
        }
        Ok(variant)
    }

    /// The variant with the same names and the values of `request`.
    pub(crate) fn for_request(&self, request: &HeaderMap) -> Self {
        Self::from_names(self.names.clone(), request)
    }

    /// Returns true if `request` selects this variant.
    #[must_use]
    pub fn matches(&self, request: &HeaderMap) -> bool {
        self.names.is_empty() || values(&self.names, request) == *self.values
    }

    /// The names of the request fields, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &HeaderName> {
        self.names.iter()
    }

    /// Bytes of memory.
    pub(crate) fn bytes(&self) -> usize {
        self.names.len() * size_of::<HeaderName>() + self.values.len()
    }

    /// The values, for a hash.
    pub(crate) fn values(&self) -> &[u8] {
        &self.values
    }

    fn from_names(names: Box<[HeaderName]>, request: &HeaderMap) -> Self {
        let values = values(&names, request).into();
        Self { names, values }
    }
}

/// Encodes the values of these fields unambiguously: each with its presence and length.
fn values(names: &[HeaderName], request: &HeaderMap) -> Vec<u8> {
    let mut all = Vec::new();
    for name in names {
        let mut lines = request.get_all(name).iter().peekable();
        if lines.peek().is_none() {
            all.push(b'-');
            continue;
        }
        let mut value = Vec::new();
        for line in lines {
            if !value.is_empty() {
                value.push(b',');
            }
            value.extend_from_slice(line.as_bytes().trim_ascii());
        }
        if *name == ACCEPT_ENCODING {
            // White space does not change the preferences.
            value.retain(|byte| !matches!(byte, b' ' | b'\t'));
            value.make_ascii_lowercase();
        }
        all.push(b'+');
        all.extend_from_slice(&value.len().to_be_bytes());
        all.extend_from_slice(&value);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, HeaderValue::from_static(value));
        }
        map
    }

    #[test]
    fn a_variant_is_selected_by_its_own_values_alone() {
        let request = map(&[("accept-language", "de"), ("x", "1")]);
        let response = map(&[("vary", "Accept-Language"), ("vary", "x, accept-language")]);
        let variant = Variant::read(&request, &response).unwrap();

        assert!(variant.matches(&request));
        for other in [
            map(&[("accept-language", "en"), ("x", "1")]),
            map(&[("accept-language", "de")]),
            map(&[("accept-language", ""), ("x", "1")]),
            map(&[("accept-language", "de"), ("x", "1"), ("x", "1")]),
            map(&[]),
        ] {
            assert!(!variant.matches(&other), "{other:?}");
        }
    }

    #[test]
    fn values_cannot_move_between_fields() {
        let response = map(&[("vary", "a, b")]);
        let one = Variant::read(&map(&[("a", "x+1"), ("b", "y")]), &response).unwrap();
        assert!(!one.matches(&map(&[("a", "x"), ("b", "+1y")])));
        let absent = Variant::read(&map(&[("b", "-")]), &response).unwrap();
        assert!(!absent.matches(&map(&[("a", "-")])));
    }

    #[test]
    fn accept_encoding_is_compared_without_its_spaces() {
        let response = map(&[("vary", "accept-encoding")]);
        let one = Variant::read(&map(&[("accept-encoding", "gzip, BR")]), &response).unwrap();
        assert!(one.matches(&map(&[("accept-encoding", "gzip,br")])));
        assert!(!one.matches(&map(&[("accept-encoding", "br,gzip")])));
    }

    #[test]
    fn a_coded_response_is_for_clients_that_accept_the_coding() {
        let response = map(&[("content-encoding", "gzip")]);
        let coded = Variant::read(&map(&[("accept-encoding", "gzip")]), &response).unwrap();
        assert!(!coded.matches(&map(&[])));
        assert!(coded.matches(&map(&[("accept-encoding", "gzip"), ("x", "1")])));
    }

    #[test]
    fn an_asterisk_and_too_many_names_select_nothing() {
        let any = map(&[("vary", "a, *")]);
        assert_eq!(Variant::read(&map(&[]), &any), Err(VaryError::Any));
        let many = map(&[("vary", "a,b,c,d,e,f,g,h,i")]);
        assert_eq!(Variant::read(&map(&[]), &many), Err(VaryError::TooLarge));
    }
}
