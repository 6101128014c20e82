//! A route's edits of a head.

use crate::headers::forwarding_claims::{has_other_sign, remove_alike};
use http::{HeaderMap, HeaderName};
use proxy_model::HeaderEdits;
use proxy_plan::{CorsPlan, RoutePlan};

/// The edits of a route with the values of one request.
#[derive(Debug)]
pub(crate) struct FilledEdits {
    pub(crate) request: HeaderEdits,
    pub(crate) response: HeaderEdits,
}

static NO_EDITS: HeaderEdits = HeaderEdits {
    remove: Vec::new(),
    set: Vec::new(),
    add: Vec::new(),
};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponseEdits<'e> {
    edits: &'e HeaderEdits,
    /// The fields of `cors` are among `edits`, and replace the upstream's.
    has_cors: bool,
}

impl ResponseEdits<'_> {
    /// No edits, for a response that is stored.
    pub(crate) const NONE: Self = Self {
        edits: &NO_EDITS,
        has_cors: false,
    };

    /// Removes, then sets, then appends.
    #[inline]
    pub(crate) fn apply(self, headers: &mut HeaderMap) {
        if self.has_cors {
            CorsPlan::remove_fields(headers);
        }
        if !self.edits.is_empty() {
            self.edits.apply(headers);
        }
    }
}

/// Edits of requests: with values filled in if they have variables, else the route's.
#[inline]
pub(crate) fn for_request<'e>(
    filled: Option<&'e FilledEdits>,
    route: &'e RoutePlan,
) -> &'e HeaderEdits {
    filled.map_or(&route.request_headers, |filled| &filled.request)
}

/// Edits of responses: with values filled in if they have variables, else the route's.
#[inline]
pub(crate) fn for_response<'e>(
    filled: Option<&'e FilledEdits>,
    route: &'e RoutePlan,
) -> ResponseEdits<'e> {
    match filled {
        Some(filled) => ResponseEdits {
            edits: &filled.response,
            has_cors: route.cors.is_some(),
        },
        None => ResponseEdits {
            edits: &route.response_headers,
            has_cors: false,
        },
    }
}

/// Removes, then sets, then appends. Also removes fields that upstreams treat as equal to a removed
/// or set one, with another character in place of `-`.
#[inline]
pub(crate) fn apply_to_request(edits: &HeaderEdits, headers: &mut HeaderMap) {
    if !edits.is_empty() {
        remove_shadows(edits, headers);
        edits.apply(headers);
    }
}

/// Names of the fields that `edits` set, remove or add to.
pub(crate) fn names(edits: &HeaderEdits) -> impl Iterator<Item = &HeaderName> {
    let HeaderEdits { remove, set, add } = edits;
    let removed = remove.iter().map(|name| &name.value);
    removed.chain(set.iter().chain(add).map(|field| &field.name))
}

#[cold]
fn remove_shadows(edits: &HeaderEdits, headers: &mut HeaderMap) {
    let HeaderEdits {
        remove,
        set,
        add: _,
    } = edits;
    let removed = remove.iter().map(|name| &name.value);
    let names = removed.chain(set.iter().map(|field| &field.name));
    for name in names.filter(|name| !has_other_sign(name.as_str())) {
        remove_alike(headers, name.as_str());
    }
}
