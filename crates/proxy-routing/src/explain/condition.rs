//! Kinds of conditions, and the description of one that does not hold.

use crate::head::Head;
use crate::host_pattern::HostPattern;
use crate::path_pattern::PathPattern;
use crate::rule::Rule;
use crate::rule::header_condition::HeaderCondition;
use crate::rule::query_condition::QueryCondition;
use http::Method;
use http::header::{AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION};
use std::fmt::{self, Display};

/// Maximum number of conditions of a kind that are listed; the rest is counted.
const MAX_LISTED: usize = 8;

/// A kind of condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionKind {
    /// `listeners` of a route.
    Listener,
    /// `host`.
    Host,
    /// `path`, `path-prefix` and `path-regex`.
    Path,
    /// `method`.
    Method,
    /// `header`.
    Header,
    /// `query-param`.
    Query,
}

/// A condition that does not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// Kind of the condition.
    pub kind: ConditionKind,
    /// The rule's condition; alternatives are joined by "or".
    pub wanted: String,
    /// The request's value. It contains text of the client, so it is for operators rather than for
    /// logs; credentials are omitted.
    pub got: String,
}

impl ConditionKind {
    /// Every kind, in the order of evaluation.
    pub const ALL: [Self; 6] = [
        Self::Listener,
        Self::Host,
        Self::Path,
        Self::Method,
        Self::Header,
        Self::Query,
    ];

    /// The kind as a word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Listener => "listener",
            Self::Host => "host",
            Self::Path => "path",
            Self::Method => "method",
            Self::Header => "header",
            Self::Query => "query-param",
        }
    }

    /// Returns true if `rule` has no condition of this kind, or one that holds.
    pub(crate) fn holds(self, rule: &Rule, head: &Head<'_>) -> bool {
        match self {
            Self::Listener => rule.listener_holds(head),
            Self::Host => rule.host_holds(head),
            Self::Path => rule.path_holds(head),
            Self::Method => rule.method_holds(head),
            Self::Header => rule.header_holds(head),
            Self::Query => rule.query_holds(head),
        }
    }

    /// Returns true if the conditions of this kind in `wide` are certainly true whenever the
    /// conditions of `narrow` are, except for `OPTIONS *`, which is not a path.
    pub(crate) fn covers(self, wide: &Rule, narrow: &Rule) -> bool {
        match self {
            Self::Listener => all_covered(&wide.listeners, &narrow.listeners, String::eq),
            Self::Host => all_covered(&wide.hosts, &narrow.hosts, HostPattern::covers),
            Self::Path => {
                wide.paths.iter().any(PathPattern::covers_all)
                    || all_covered(&wide.paths, &narrow.paths, PathPattern::covers)
            }
            Self::Method => all_covered(&wide.methods, &narrow.methods, Method::eq),
            Self::Header => all_covered(&wide.headers, &narrow.headers, HeaderCondition::covers),
            Self::Query => all_covered(
                &wide.query_params,
                &narrow.query_params,
                QueryCondition::covers,
            ),
        }
    }

    /// The first kind that does not hold.
    pub(crate) fn first_unmet(rule: &Rule, head: &Head<'_>) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| !kind.holds(rule, head))
    }

    /// The conditions of this kind, with the request's value.
    pub(crate) fn describe(self, rule: &Rule, head: &Head<'_>) -> Unmet {
        let (wanted, got) = match self {
            Self::Listener => (any_of(&rule.listeners), or_none(head.listener)),
            Self::Host => (any_of(&rule.hosts), or_none(head.host)),
            Self::Path => (any_of(&rule.paths), head.path.to_owned()),
            Self::Method => (any_of(&rule.methods), head.method.to_string()),
            Self::Header => (any_of(&rule.headers), shown_headers(&rule.headers, head)),
            Self::Query => (
                any_of(&rule.query_params),
                shown_query(&rule.query_params, head),
            ),
        };
        let kind = self;
        Unmet { kind, wanted, got }
    }
}

impl Display for ConditionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn any_of(conditions: &[impl Display]) -> String {
    let written = conditions.iter().take(MAX_LISTED).map(ToString::to_string);
    let mut parts: Vec<String> = written.collect();
    if MAX_LISTED < conditions.len() {
        parts.push(format!("{} more", conditions.len() - MAX_LISTED));
    }
    parts.join(" or ")
}

fn or_none(text: &str) -> String {
    if text.is_empty() {
        "none".to_owned()
    } else {
        text.to_owned()
    }
}

fn shown_headers(conditions: &[HeaderCondition], head: &Head<'_>) -> String {
    let mut parts: Vec<String> = Vec::new();
    for name in conditions
        .iter()
        .take(MAX_LISTED)
        .map(HeaderCondition::name)
    {
        let secret = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION].contains(name);
        for value in head.headers.get_all(name).iter().take(MAX_LISTED) {
            if secret || value.is_sensitive() {
                parts.push(format!("{name}: (hidden)"));
            } else {
                parts.push(format!(
                    "{name}: {}",
                    String::from_utf8_lossy(value.as_bytes())
                ));
            }
        }
    }
    parts.dedup();
    or_none(&parts.join(", "))
}

fn shown_query(conditions: &[QueryCondition], head: &Head<'_>) -> String {
    let named = head.query.split('&').filter(|pair| {
        let mut names = conditions
            .iter()
            .map(QueryCondition::name)
            .map(QueryCondition::present);
        names.any(|present| present.is_ok_and(|present| present.holds(pair)))
    });
    let parts: Vec<&str> = named.take(MAX_LISTED).collect();
    or_none(&parts.join("&"))
}

fn all_covered<T>(wide: &[T], narrow: &[T], covers: impl Fn(&T, &T) -> bool) -> bool {
    let covered = |narrow| wide.iter().any(|wide| covers(wide, narrow));
    wide.is_empty() || (!narrow.is_empty() && narrow.iter().all(covered))
}
