//! The conditions of one route.

pub(crate) mod header_condition;
pub(crate) mod query_condition;

use crate::head::Head;
use crate::host_pattern::HostPattern;
use crate::path_pattern::PathPattern;
use crate::rank::narrow;
use crate::rule::header_condition::HeaderCondition;
use crate::rule::query_condition::QueryCondition;
use http::Method;

/// The priority of a rule without one.
pub const DEFAULT_PRIORITY: i32 = 50;

/// The conditions under which a request belongs to a route.
///
/// Conditions of one kind are alternatives; of each kind that has conditions, one must hold. A rule
/// without conditions matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The route's id in the configuration.
    pub id: String,
    /// The higher priority wins, before anything else is compared.
    pub priority: i32,
    /// Names of listeners; the request must have arrived at one of them.
    pub listeners: Vec<String>,
    /// True if `listeners` are all listeners of the rule's protocol, and not configured: they do
    /// not affect precedence.
    pub has_implied_listeners: bool,
    /// Hosts: the request must have one of them.
    pub hosts: Vec<HostPattern>,
    /// Paths: the request must have one of them.
    pub paths: Vec<PathPattern>,
    /// Header conditions: one of them must hold.
    pub headers: Vec<HeaderCondition>,
    /// Methods, of which the request must have one; case-sensitive, and `GET` does not include
    /// `HEAD`.
    pub methods: Vec<Method>,
    /// Query conditions, of which one must hold.
    pub query_params: Vec<QueryCondition>,
}

impl Rule {
    /// A rule of [`DEFAULT_PRIORITY`] without conditions.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            priority: DEFAULT_PRIORITY,
            listeners: Vec::new(),
            has_implied_listeners: false,
            hosts: Vec::new(),
            paths: Vec::new(),
            headers: Vec::new(),
            methods: Vec::new(),
            query_params: Vec::new(),
        }
    }

    /// Returns true if the rule has no conditions other than on host and path.
    pub(crate) fn is_bare(&self) -> bool {
        self.listeners.is_empty()
            && self.headers.is_empty()
            && self.methods.is_empty()
            && self.query_params.is_empty()
    }

    pub(crate) fn listener_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.listeners, |listener| listener == head.listener)
    }

    pub(crate) fn host_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.hosts, |host| host.matches(head.host))
    }

    pub(crate) fn path_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.paths, |path| path.matches(head.path))
    }

    pub(crate) fn method_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.methods, |method| method == head.method)
    }

    pub(crate) fn header_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.headers, |header| header.holds(head.headers))
    }

    pub(crate) fn query_holds(&self, head: &Head<'_>) -> bool {
        holds(&self.query_params, |parameter| parameter.holds(head.query))
    }

    /// Number of header and query conditions that hold, and one more each for a listener and a
    /// method; `None` if no condition of one of these kinds holds.
    pub(crate) fn conditions_held(&self, head: &Head<'_>) -> Option<u32> {
        if !self.listener_holds(head) || !self.method_holds(head) {
            return None;
        }
        let headers = count(&self.headers, |header| header.holds(head.headers))?;
        let query = count(&self.query_params, |parameter| parameter.holds(head.query))?;
        Some(narrow(self.single_conditions() + headers + query))
    }

    /// The greatest result of [`Rule::conditions_held`].
    pub(crate) fn most_conditions(&self) -> u32 {
        narrow(self.single_conditions() + self.headers.len() + self.query_params.len())
    }

    /// Returns true if listeners are a written condition.
    pub(crate) fn names_listeners(&self) -> bool {
        !self.listeners.is_empty() && !self.has_implied_listeners
    }

    /// Number of kinds of conditions that count once, regardless of their number of alternatives.
    fn single_conditions(&self) -> usize {
        usize::from(self.names_listeners()) + usize::from(!self.methods.is_empty())
    }

    /// Removes repeated conditions, which would count twice.
    pub(crate) fn without_repeats(mut self) -> Self {
        remove_repeats(&mut self.headers);
        remove_repeats(&mut self.query_params);
        self
    }
}

/// Number of conditions that hold; `None` if there are some and none holds.
fn count<T>(conditions: &[T], holds: impl Fn(&T) -> bool) -> Option<usize> {
    let holding = conditions
        .iter()
        .filter(|condition| holds(condition))
        .count();
    (conditions.is_empty() || 0 < holding).then_some(holding)
}

fn remove_repeats<T: PartialEq>(conditions: &mut Vec<T>) {
    let mut distinct = Vec::with_capacity(conditions.len());
    for condition in conditions.drain(..) {
        if !distinct.contains(&condition) {
            distinct.push(condition);
        }
    }
    *conditions = distinct;
}

fn holds<T>(conditions: &[T], holds: impl FnMut(&T) -> bool) -> bool {
    conditions.is_empty() || conditions.iter().any(holds)
}
