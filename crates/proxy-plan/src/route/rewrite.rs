//! Rewriting of the path for the upstream.

use http::uri::PathAndQuery;
use proxy_model::{self as model, CapturePart, PrefixReplacement, Setting};
use proxy_routing::{PathPattern, Readings, forgiving_path, is_plain_path};
use std::borrow::Cow;

/// A compiled rewriting of paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RewritePlan {
    path: PathRewrite,
    /// From the upstream's path to the client's; `None` if it is not invertible.
    pub inverse: Option<PrefixReplacement>,
    /// True if `Location` is written back.
    pub location: bool,
    /// True if cookies are written back.
    pub cookies: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathRewrite {
    Prefix(PrefixReplacement),
    Whole(String),
    Captures(CaptureRewrite),
}

/// A path made of captures.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CaptureRewrite {
    pattern: PathPattern,
    parts: Vec<PathPart>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PathPart {
    Text(String),
    /// Index of a group.
    Group(usize),
}

impl RewritePlan {
    /// `paths` are the conditions of the route on paths.
    pub(crate) fn compile(rewrite: &model::Rewrite, paths: &[Setting<PathPattern>]) -> Self {
        let model::Rewrite {
            place: _,
            strip_prefix,
            replace_prefix,
            path,
            captures,
            location,
            cookies,
        } = rewrite;
        let prefix = strip_prefix.as_deref().or(replace_prefix.as_deref());
        let whole = path.as_deref().cloned().unwrap_or_default();
        let captured = captures.as_ref().zip(paths.first());
        Self {
            path: match (prefix, captured) {
                (Some(prefix), _) => PathRewrite::Prefix(prefix.clone()),
                (None, Some((template, pattern))) => {
                    PathRewrite::Captures(CaptureRewrite::new(&template.parts, pattern))
                }
                (None, None) => PathRewrite::Whole(whole),
            },
            inverse: prefix.map(|PrefixReplacement { from, to }| PrefixReplacement {
                from: to.clone(),
                to: from.clone(),
            }),
            location: **location,
            cookies: **cookies,
        }
    }

    /// The target for the upstream; `None` if it is unchanged.
    #[must_use]
    pub fn target(&self, target: &PathAndQuery) -> Option<PathAndQuery> {
        let path = self.path(target.path())?;
        let target = match target.query() {
            Some(query) => format!("{path}?{query}"),
            None => path.into_owned(),
        };
        PathAndQuery::try_from(target).ok()
    }

    /// Returns true if no server's reading of the rewritten path leaves the root. Only a path with
    /// several readings, and one made of captures, may be unsafe.
    pub(crate) fn is_safe(&self, path: &str) -> bool {
        if let PathRewrite::Captures(_) = self.path {
            return self.path(path).is_none_or(|path| {
                let is_read_alike =
                    is_plain_path(&path) || Readings::from_path(&path).fault.is_none();
                is_read_alike && PathAndQuery::try_from(&*path).is_ok()
            });
        }
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
            PathRewrite::Captures(captures) if is_plain_path(path) => {
                captures.apply(path).map(Cow::Owned)
            }
            PathRewrite::Captures(captures) => {
                captures.apply(&forgiving_path(path).0).map(Cow::Owned)
            }
            // The route is found by this form of the path.
            PathRewrite::Prefix(prefix) => prefix.apply(&forgiving_path(path).0).map(Cow::Owned),
        }
    }
}

impl CaptureRewrite {
    fn new(parts: &[CapturePart], pattern: &PathPattern) -> Self {
        let parts = parts.iter().map(|part| match part {
            CapturePart::Text(text) => PathPart::Text(text.clone()),
            // The configuration was checked for the group.
            CapturePart::Group(name) => PathPart::Group(pattern.group(name).unwrap_or_default()),
        });
        Self {
            parts: parts.collect(),
            pattern: pattern.clone(),
        }
    }

    /// The path made of the captures in `path`; `None` if the regex does not match. It begins with
    /// exactly one slash, so that it never names a host.
    fn apply(&self, path: &str) -> Option<String> {
        let groups = self.pattern.captures(path)?;
        let mut made = String::from("/");
        for part in &self.parts {
            let text = match part {
                PathPart::Text(text) => text,
                PathPart::Group(index) => groups.get(*index).copied().flatten().unwrap_or(""),
            };
            let text = if made == "/" {
                text.trim_start_matches('/')
            } else {
                text
            };
            made.push_str(text);
        }
        Some(made)
    }
}
