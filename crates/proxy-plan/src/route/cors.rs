//! Cross-origin requests. [Fetch standard, CORS protocol]

use super::fixed_response::FixedResponsePlan;
use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    ACCESS_CONTROL_REQUEST_METHOD, ORIGIN, VARY,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proxy_model::{self as model, HeaderEdits, HeaderField, OriginPattern, Setting};
use std::fmt::Display;

/// Prefix of the fields that `cors` decides on, including fields of browsers beyond the Fetch
/// standard.
const FIELD_PREFIX: &str = "access-control-";
/// Methods without a setting: CORS-safelisted ones, as sent by forms and links.
const DEFAULT_METHODS: &str = "GET, HEAD, POST";

/// The compiled rules for pages of other origins.
#[derive(Clone, Debug)]
pub struct CorsPlan {
    origins: Vec<OriginPattern>,
    is_any: bool,
    credentials: bool,
    methods: HeaderValue,
    headers: Option<HeaderValue>,
    exposed: Option<HeaderValue>,
    max_age: HeaderValue,
    preflight: FixedResponsePlan,
}

impl CorsPlan {
    pub(crate) fn compile(cors: &model::Cors) -> Self {
        let model::Cors {
            place: _,
            allow_origins,
            allow_methods,
            allow_headers,
            expose_headers,
            allow_credentials,
            max_age,
        } = cors;
        let origins: Vec<OriginPattern> =
            allow_origins.iter().map(|one| one.value.clone()).collect();
        Self {
            is_any: origins.contains(&OriginPattern::Any),
            origins,
            credentials: **allow_credentials,
            methods: listed(allow_methods).unwrap_or(HeaderValue::from_static(DEFAULT_METHODS)),
            headers: listed(allow_headers),
            exposed: listed(expose_headers),
            max_age: max_age.as_secs().into(),
            preflight: FixedResponsePlan {
                status: StatusCode::NO_CONTENT,
                body: None,
                content_type: HeaderValue::from_static("text/plain"),
            },
        }
    }

    /// The response to a preflight request; `None` for other requests.
    pub(crate) fn preflight(
        &self,
        method: &Method,
        headers: &HeaderMap,
    ) -> Option<&FixedResponsePlan> {
        is_preflight(method, headers).then_some(&self.preflight)
    }

    /// Returns true if the upstream's field of this name is removed.
    #[must_use]
    pub fn replaces(name: &HeaderName) -> bool {
        name.as_str().starts_with(FIELD_PREFIX)
    }

    /// Removes the upstream's fields, before [`Self::edits`] are applied.
    pub fn remove_fields(headers: &mut HeaderMap) {
        while let Some(name) = headers.keys().find(|name| Self::replaces(name)) {
            let name = name.clone();
            headers.remove(name);
        }
    }

    /// The edits of the response to a request. The upstream's own fields are removed before:
    /// [`Self::remove_fields`].
    #[must_use]
    pub fn edits(&self, method: &Method, headers: &HeaderMap) -> HeaderEdits {
        let mut edits = HeaderEdits::default();
        let field = |name: HeaderName, value: HeaderValue| {
            Setting::defaulted(HeaderField {
                name,
                value,
                template: None,
            })
        };
        if !self.is_any {
            let vary = HeaderValue::from_static("Origin");
            edits.add.push(field(VARY, vary));
        }
        // On every response, since a cache may give it to a request of another origin.
        if self.is_any {
            let all = HeaderValue::from_static("*");
            edits.set.push(field(ACCESS_CONTROL_ALLOW_ORIGIN, all));
        }
        let Some(origin) = headers.get(ORIGIN) else {
            return edits;
        };
        let text = origin.to_str().unwrap_or_default();
        if !self.origins.iter().any(|pattern| pattern.matches(text)) {
            return edits;
        }
        if !self.is_any {
            let allowed = origin.clone();
            edits.set.push(field(ACCESS_CONTROL_ALLOW_ORIGIN, allowed));
        }
        if self.credentials {
            let value = HeaderValue::from_static("true");
            edits
                .set
                .push(field(ACCESS_CONTROL_ALLOW_CREDENTIALS, value));
        }
        if is_preflight(method, headers) {
            let (methods, age) = (self.methods.clone(), self.max_age.clone());
            edits.set.push(field(ACCESS_CONTROL_ALLOW_METHODS, methods));
            edits.set.push(field(ACCESS_CONTROL_MAX_AGE, age));
            let headers = self.headers.clone();
            edits
                .set
                .extend(headers.map(|value| field(ACCESS_CONTROL_ALLOW_HEADERS, value)));
        } else {
            let exposed = self.exposed.clone();
            edits
                .set
                .extend(exposed.map(|value| field(ACCESS_CONTROL_EXPOSE_HEADERS, value)));
        }
        edits
    }
}

fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    *method == Method::OPTIONS
        && headers.contains_key(ORIGIN)
        && headers.contains_key(ACCESS_CONTROL_REQUEST_METHOD)
}

/// The values as one list; `None` if there is none.
fn listed<T: Display>(values: &[Setting<T>]) -> Option<HeaderValue> {
    let values: Vec<String> = values.iter().map(|one| one.value.to_string()).collect();
    let list = (!values.is_empty()).then(|| values.join(", "));
    list.and_then(|list| HeaderValue::try_from(list).ok())
}
