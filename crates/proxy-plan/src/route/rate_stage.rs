//! The stage of a request at which a rate limit is evaluated, and the value of its key.

use http::{HeaderMap, HeaderName, HeaderValue};
use std::borrow::Cow;

/// The stage of a request at which a limit is evaluated, in order of evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RateStage {
    /// Before the request's credentials are checked.
    First,
    /// The field of the key has a claim of the token, which replaces the client's own field. Not
    /// reached by a request without valid credentials.
    AfterCredentials,
    /// The key is a field, on a route with agents, which may set it.
    AfterAgents,
}

/// The value of the field that is the key of a limit; repeated fields are joined to a list. `None`
/// without the field. [RFC 9110 §5.3]
#[must_use]
pub fn rate_key_value<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<Cow<'h, [u8]>> {
    let mut lines = headers.get_all(name).iter().map(HeaderValue::as_bytes);
    let mut value = Cow::Borrowed(lines.next()?);
    for line in lines {
        let list = value.to_mut();
        list.extend_from_slice(b", ");
        list.extend_from_slice(line);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_fields_are_one_key() {
        let name = HeaderName::from_static("x-user");
        for (lines, value) in [
            (&[][..], None),
            (&["ann"][..], Some("ann")),
            (&[""][..], Some("")),
            (&["ann", "bob"][..], Some("ann, bob")),
            (&["ann", "", "bob"][..], Some("ann, , bob")),
        ] {
            let mut headers = HeaderMap::new();
            for line in lines {
                headers.append(name.clone(), HeaderValue::from_static(line));
            }
            let expected = value.map(str::as_bytes);
            assert_eq!(rate_key_value(&headers, &name).as_deref(), expected);
        }
    }
}
