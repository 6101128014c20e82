//! A route's edits of a head.

use http::HeaderMap;
use proxy_model::HeaderEdits;

/// Removes, then sets, then appends.
#[inline]
pub(crate) fn apply(edits: &HeaderEdits, headers: &mut HeaderMap) {
    if !edits.is_empty() {
        apply_all(edits, headers);
    }
}

#[cold]
fn apply_all(edits: &HeaderEdits, headers: &mut HeaderMap) {
    let HeaderEdits { remove, set, add } = edits;
    for name in remove {
        headers.remove(&name.value);
    }
    for field in set {
        headers.insert(field.name.clone(), field.value.value.clone());
    }
    for field in add {
        headers.append(field.name.clone(), field.value.value.clone());
    }
}
