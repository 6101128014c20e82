//! The rules of one host and one path.

use super::candidate::Candidate;
use super::keyed::Keyed;
use crate::rank::Rank;
use crate::rule::Rule;

/// Number of rules with conditions above which a bucket is indexed by them too.
const MAX_UNKEYED_RULES: usize = 8;

/// Candidates, best first.
#[derive(Debug)]
pub(crate) struct Bucket {
    /// The best rank that any of the candidates can have.
    pub(crate) top: Rank,
    /// Candidates that are tried one by one.
    pub(crate) open: Vec<Candidate>,
    /// Candidates that are indexed by a method, a header or a query parameter.
    pub(crate) keyed: Option<Box<Keyed>>,
}

impl Bucket {
    /// `None` if there are no candidates.
    pub(super) fn new(mut candidates: Vec<Candidate>, rules: &[Rule]) -> Option<Self> {
        candidates.sort_by_key(|candidate| std::cmp::Reverse(candidate.bound));
        candidates.dedup_by_key(|candidate| candidate.bound);
        let top = candidates.first()?.bound;
        let conditional = candidates.iter().filter(|candidate| !candidate.bare);
        if conditional.count() <= MAX_UNKEYED_RULES {
            let (open, keyed) = (candidates, None);
            return Some(Self { top, open, keyed });
        }
        let (keyed, open) = candidates
            .into_iter()
            .partition(|candidate| !candidate.bare);
        let keyed = Some(Box::new(Keyed::new(keyed, rules)));
        Some(Self { top, open, keyed })
    }

    /// All candidates, those tried one by one first.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Candidate> {
        let keyed = self.keyed.iter().flat_map(|keyed| keyed.all());
        self.open.iter().chain(keyed)
    }

    /// Lists that contain every rule of this bucket that matches all requests of `rule`.
    pub(crate) fn lists_around(&self, rule: &Rule) -> impl Iterator<Item = &[Candidate]> {
        let keyed = self.keyed.iter().flat_map(|keyed| keyed.lists_around(rule));
        std::iter::once(&*self.open).chain(keyed)
    }
}
