//! Properties that hold for any input; run by the fuzz targets and by the replay of their corpora.
#![expect(dead_code, reason = "each fuzz target runs one of the checks")]

use proxy_routing::{forgiving_path, normal_host};
use std::borrow::Cow;

/// A path has one canonical form, and that form is plain.
pub(crate) fn canonical_path(text: &str) {
    let (path, fault) = forgiving_path(text);
    assert_eq!(fault.is_none(), proxy_routing::canonical_path(text).is_ok());
    if !path.starts_with('/') {
        assert_eq!(path, text);
        return;
    }
    assert!(path.is_ascii());
    assert!(!path.contains(['\\', '\0', ' ', '?', '#']));
    assert!(
        path.split('/')
            .all(|segment| segment != "." && segment != "..")
    );
    let (again, _) = forgiving_path(&path);
    assert_eq!(again, path);
    if fault.is_none() {
        assert!(
            matches!(proxy_routing::canonical_path(&path), Ok(Cow::Borrowed(same)) if same == path)
        );
    }
}

/// A host has one form, which is accepted again.
pub(crate) fn host(text: &str) {
    let Ok(host) = normal_host(text) else {
        return;
    };
    assert!(!host.name.is_empty() && host.name.len() <= 255);
    assert!(!host.name.bytes().any(|byte| byte.is_ascii_uppercase()));
    assert!(!host.name.ends_with('.'));
    assert!(host.name.parse::<http::uri::Authority>().is_ok());
    let again = normal_host(&host.name).map(|again| (again.name, again.port));
    assert_eq!(again, Ok((Cow::Borrowed(&*host.name), None)));
}
