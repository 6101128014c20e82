//! Names of the response fields that a route edits.

use super::cors::CorsPlan;
use http::HeaderName;
use http::header::{CONTENT_LOCATION, LOCATION, SET_COOKIE};
use proxy_model::{self as model, HeaderEdits};

/// The response fields that a route removes, sets or writes back. They are edited in the head of
/// the final response, and left out of interim responses and trailers, where the upstream's value
/// would pass.
#[derive(Clone, Debug, Default)]
pub struct EditedFields {
    names: Vec<HeaderName>,
    has_cors: bool,
}

impl EditedFields {
    pub(super) fn compile(route: &model::Route) -> Self {
        let policies = &route.policies;
        let HeaderEdits {
            remove,
            set,
            add: _,
        } = &policies.response_headers;
        let removed = remove.iter().map(|name| &name.value);
        let mut names: Vec<HeaderName> = removed
            .chain(set.iter().map(|field| &field.name))
            .cloned()
            .collect();
        if let Some(rewrite) = &policies.rewrite {
            if *rewrite.location {
                names.extend([LOCATION, CONTENT_LOCATION]);
            }
            if *rewrite.cookies {
                names.push(SET_COOKIE);
            }
        }
        Self {
            names,
            has_cors: policies.cors.is_some(),
        }
    }

    /// Returns true if the route edits the field of this name.
    #[must_use]
    pub fn has(&self, name: &HeaderName) -> bool {
        self.names.contains(name) || self.has_cors && CorsPlan::replaces(name)
    }
}
