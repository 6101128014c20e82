//! Routes and targets that a reload has removed, and the streams that still use them.

use proxy_clock::Tick;
use proxy_errors::Reason;
use proxy_plan::{Plan, TargetIdentity};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Removed routes and targets whose streams may still go on, and when that ends.
#[derive(Debug, Default)]
pub(crate) struct Removals(HashMap<Part, Tick>);

/// A part of a plan that streams depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Part {
    Route(Arc<str>),
    Target(Arc<TargetIdentity>),
}

/// One stream's look at reloads.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReloadWatch {
    /// Reloads of the worker when it looked last.
    seen: u32,
    /// Whether its route or target is gone.
    doomed: bool,
}

impl Removals {
    /// `new` follows `old`. Streams that depend on what it lacks may go on until `end`; those for which
    /// an end was set before keep it, unless what they depend on is back.
    pub(crate) fn apply(&mut self, old: &Plan, new: &Plan, end: Tick) {
        let present: HashSet<Part> = parts(new).collect();
        self.0.retain(|part, _| !present.contains(part));
        for part in parts(old).filter(|part| !present.contains(part)) {
            self.0.entry(part).or_insert(end);
        }
    }

    /// Forgets the parts whose time is over at `now`. Whether there were any: their streams are to be
    /// woken.
    pub(crate) fn expire(&mut self, now: Tick) -> bool {
        let before = self.0.len();
        self.0.retain(|_, end| now < *end);
        self.0.len() < before
    }
}

fn parts(plan: &Plan) -> impl Iterator<Item = Part> {
    let routes = plan.routes().iter();
    let routes = routes.map(|route| Part::Route(Arc::clone(&route.id)));
    let upstreams = plan.upstreams().iter();
    let targets = upstreams.flat_map(|upstream| &upstream.targets);
    routes.chain(targets.map(|target| Part::Target(Arc::clone(&target.identity))))
}

impl Part {
    fn reason(&self) -> Reason {
        match self {
            Self::Route(_) => Reason::RouteRemoved,
            Self::Target(_) => Reason::TargetRemoved,
        }
    }
}

impl ReloadWatch {
    /// A stream that begins after this many reloads of its worker.
    pub(crate) fn new(reloads: u32) -> Self {
        Self {
            seen: reloads,
            doomed: false,
        }
    }

    /// Whether there is nothing to look at: no reload since the last look, and nothing gone then.
    #[inline]
    pub(crate) fn is_quiet(self, reloads: u32) -> bool {
        self.seen == reloads && !self.doomed
    }

    /// Why a stream that has `lost` its route or target must end now, if it must.
    #[cold]
    pub(crate) fn look(
        &mut self,
        reloads: u32,
        lost: Option<&Part>,
        removals: &Removals,
    ) -> Option<Reason> {
        self.seen = reloads;
        self.doomed = lost.is_some();
        let over = lost.filter(|part| !removals.0.contains_key(part));
        over.map(Part::reason)
    }
}
