//! Fields of forms and queries, and CSRF tokens.

use crate::request::failure::Failure;
use axum::body::Body;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use control_auth::sha256;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

/// Name of the token's field.
const CSRF: &str = "csrf";
/// Time limit for the body of a form.
const FORM_LIMIT: Duration = Duration::from_secs(30);

/// Fields of a form or a query. `Debug` hides the values, because some are passwords.
#[derive(Clone, Default)]
pub(crate) struct Fields(Arc<[(String, String)]>);

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_tuple("Fields").field(&names).finish()
    }
}

impl Fields {
    /// Parses URL-encoded fields.
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let pairs = form_urlencoded::parse(bytes);
        Self(pairs.into_owned().collect())
    }

    /// Reads the fields of a form of at most `limit` bytes.
    pub(crate) async fn read(
        headers: &HeaderMap,
        body: Body,
        limit: usize,
    ) -> Result<Self, Failure> {
        let kind = headers.get(header::CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let essence = kind.split(';').next().unwrap_or_default().trim();
        if !essence.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Err(Failure::no_form());
        }
        match timeout(FORM_LIMIT, Limited::new(body, limit).collect()).await {
            Ok(Ok(read)) => {
                let fields = Self::parse(&read.to_bytes());
                fields.check_text()?;
                Ok(fields)
            }
            Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Failure::too_large(limit)),
            Ok(Err(_)) => Err(Failure::no_form()),
            Err(_) => Err(Failure::too_slow()),
        }
    }

    /// Initial values of a form.
    pub(crate) fn filled(pairs: &[(&str, &str)]) -> Self {
        let owned = pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self(owned.collect())
    }

    /// First value of a field; empty if it is missing.
    pub(crate) fn get(&self, name: &str) -> &str {
        let mut found = self.0.iter().filter(|(own, _)| own == name);
        found.next().map_or("", |(_, value)| value)
    }

    /// First value of a field; `None` if it is missing or blank.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        Some(self.get(name).trim()).filter(|value| !value.is_empty())
    }

    /// The fields in the order of the form, without the CSRF token.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let fields = self.0.iter().filter(|(name, _)| name != CSRF);
        fields.map(|(name, value)| (name.as_str(), value.as_str()))
    }

    /// All values of a field, such as those of checkboxes.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let own = self.0.iter().filter(move |(own, _)| own == name);
        own.map(|(_, value)| value.as_str())
    }

    /// Sets the only value of a field.
    pub(crate) fn with(self, name: &str, value: &str) -> Self {
        let kept = self.0.iter().filter(|(own, _)| own != name);
        let set = [(name.to_owned(), value.to_owned())];
        Self(kept.cloned().chain(set).collect())
    }

    /// Removes a field that must not be shown again.
    pub(crate) fn without(self, name: &str) -> Self {
        if self.0.iter().all(|(own, _)| own != name) {
            return self;
        }
        let kept = self.0.iter().filter(|(own, _)| own != name);
        Self(kept.cloned().collect())
    }

    /// Refuses fields other than the token, `once` and `boxes`, and duplicates of all but `boxes`:
    /// otherwise a value would be ignored silently.
    pub(crate) fn check_names(&self, once: &[&str], boxes: Option<&str>) -> Result<(), Failure> {
        let mut seen: Vec<&str> = Vec::new();
        for (name, _) in self.0.iter() {
            let name = name.as_str();
            if boxes == Some(name) {
                continue;
            }
            if name != CSRF && !once.contains(&name) {
                return Err(Failure::unknown_field(name));
            }
            if seen.contains(&name) {
                return Err(Failure::repeated_field(name));
            }
            seen.push(name);
        }
        Ok(())
    }

    /// Refuses values with NUL, which PostgreSQL rejects.
    pub(crate) fn check_text(&self) -> Result<(), Failure> {
        let has_nul = self.0.iter().any(|(_, value)| value.contains('\0'));
        (!has_nul).then_some(()).ok_or_else(Failure::nul)
    }

    /// Refuses a form without the expected CSRF token.
    pub(crate) fn check_csrf(&self, expected: &str) -> Result<(), Failure> {
        let token = self.get(CSRF);
        // Compares hashes, so that the duration reveals nothing about the token.
        let is_equal = sha256(token.as_bytes()) == sha256(expected.as_bytes());
        is_equal.then_some(()).ok_or_else(Failure::stale_form)
    }
}

/// CSRF token for forms, derived from the secret of the session or browser.
pub(crate) fn csrf_token(secret: &str) -> String {
    sha256(format!("csrf {secret}").as_bytes())
}

impl<S: Sync> FromRequestParts<S> for Fields {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_decoded_and_a_missing_one_is_empty() {
        let fields = Fields::parse(b"name=fra+1&scope=a&scope=b%26c");
        assert_eq!(fields.get("name"), "fra 1");
        assert_eq!(fields.all("scope").collect::<Vec<_>>(), ["a", "b&c"]);
        assert_eq!(fields.get("none"), "");
        assert_eq!(Fields::parse(b"name=+").given("name"), None);
        assert_eq!(
            format!("{:?}", Fields::parse(b"password=x")),
            "Fields([\"password\"])"
        );
    }

    #[test]
    fn a_value_with_nul_is_refused() {
        assert!(Fields::parse(b"q=a%00b").check_text().is_err());
        assert!(Fields::parse(b"q=a%01b").check_text().is_ok());
    }

    #[test]
    fn an_unknown_and_a_repeated_field_are_refused() {
        let check = |form: &str| {
            let fields = Fields::parse(format!("csrf=x&{form}").as_bytes());
            fields.check_names(&["name"], Some("scope")).is_ok()
        };
        assert!(check("name=a&scope=a&scope=b"));
        assert!(!check("name=a&name=b"));
        assert!(!check("name=a&csrf=y"));
        assert!(!check("Name=a"));
        assert!(!check("="));
    }

    #[test]
    fn a_form_of_another_session_is_refused() {
        let (own, other) = (csrf_token("a"), csrf_token("b"));
        let fields = Fields::filled(&[("csrf", &own)]);
        assert!(fields.check_csrf(&own).is_ok());
        assert!(fields.check_csrf(&other).is_err());
        assert!(Fields::default().check_csrf(&own).is_err());
    }
}
