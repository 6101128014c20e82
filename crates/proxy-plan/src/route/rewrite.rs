//! Rewriting of the path for the upstream.

use http::uri::PathAndQuery;
use proxy_model::{self as model, PrefixReplacement};
use proxy_routing::{Readings, forgiving_path, is_plain_path};
use std::borrow::Cow;

/// A compiled rewriting of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritePlan {
    path: PathRewrite,
    /// From the upstream's path to the client's; `None` if that is not known.
    pub inverse: Option<PrefixReplacement>,
    /// `Location` is written back.
    pub location: bool,
    /// Cookies are written back.
    pub cookies: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathRewrite {
    Prefix(PrefixReplacement),
    Whole(String),
}

impl RewritePlan {
    pub(crate) fn compile(rewrite: &model::Rewrite) -> Self {
        let model::Rewrite {
            place: _,
            strip_prefix,
            replace_prefix,
            path,
            location,
            cookies,
        } = rewrite;
        let prefix = strip_prefix.as_deref().or(replace_prefix.as_deref());
        let whole = path.as_deref().cloned().unwrap_or_default();
        Self {
            path: match prefix {
                Some(prefix) => PathRewrite::Prefix(prefix.clone()),
                None => PathRewrite::Whole(whole),
            },
            inverse: prefix.map(|PrefixReplacement { from, to }| PrefixReplacement {
                from: to.clone(),
                to: from.clone(),
            }),
            location: **location,
            cookies: **cookies,
        }
    }

    /// The target for the upstream; `None` if it stays as the client sent it.
    #[must_use]
    pub fn target(&self, target: &PathAndQuery) -> Option<PathAndQuery> {
        let path = self.path(target.path())?;
        let target = match target.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.into_owned(),
        };
        PathAndQuery::try_from(target).ok()
    }

    /// Whether servers read the rewritten path alike enough that none leaves the root: only a path with
    /// several readings may not.
    pub(crate) fn is_safe(&self, path: &str) -> bool {
        is_plain_path(path)
            || self
                .path(path)
                .is_none_or(|path| Readings::from_path(&path).fault.is_none())
    }

    fn path(&self, path: &str) -> Option<Cow<'_, str>> {
        if !path.starts_with('/') {
            return None;
        }
        match &self.path {
            PathRewrite::Whole(whole) => Some(Cow::Borrowed(whole)),
            PathRewrite::Prefix(prefix) if is_plain_path(path) => {
                prefix.apply(path).map(Cow::Owned)
            }
            // The route is found by this form of the path.
            PathRewrite::Prefix(prefix) => prefix.apply(&forgiving_path(path).0).map(Cow::Owned),
        }
    }
}
