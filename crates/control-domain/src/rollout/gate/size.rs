//! Comparison of response sizes: a wrong upstream may answer 200 with other content.
//!
//! Sizes of one route vary by orders of magnitude, so means cannot be compared. Shares are: the
//! share of responses below a size in the batch with the share below four times that size on the
//! rest, and likewise above a size. If no response changed its size by more than a factor of four,
//! the first share is not larger.

use crate::rollout::gate::pool::{Hits, float};
use crate::rollout::gate::sides::{ComparedReports, Difference, Direction, Scope};
use crate::rollout::gate::verdict::GateFailure;
use control_wire::Traffic;

/// Number of size classes in a report: no bytes, then by powers of two.
const CLASSES: u8 = 32;
/// Number of classes between a size and four times that size.
const FACTOR_CLASSES: u8 = 2;
/// Tolerated growth of the share of smaller, or of larger responses.
const MAX_GROWTH: f64 = 0.3;

/// A range of size classes, open at one end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// This class and all smaller ones.
    UpTo(u8),
    /// This class and all larger ones.
    From(u8),
}

/// The first route with responses of other sizes than on the rest.
pub(super) fn sizes(sides: &ComparedReports<'_>) -> Option<GateFailure> {
    let scopes = sides.scopes();
    let mut routes = scopes.filter(|scope| scope.route.is_some() && scope.route == scope.baseline);
    routes.find_map(|scope| differs(sides, scope))
}

fn differs(sides: &ComparedReports<'_>, scope: Scope<'_>) -> Option<GateFailure> {
    let route = scope.route?;
    let smaller = (0..CLASSES - FACTOR_CLASSES).map(End::UpTo);
    let larger = (FACTOR_CLASSES + 1..CLASSES).map(End::From);
    let (own, others) = (
        Totals::new(sides.batch, route),
        Totals::new(sides.rest, route),
    );
    let farthest = |ends: &mut dyn Iterator<Item = End>| {
        let growth = |end: &End| own.share(*end) - others.share(end.wider());
        let growths = ends.map(|end| (growth(&end), end));
        let (growth, end) = growths.max_by(|a, b| a.0.total_cmp(&b.0))?;
        (MAX_GROWTH < growth).then_some(end)
    };
    [
        (farthest(&mut { smaller }), "smaller"),
        (farthest(&mut { larger }), "larger"),
    ]
    .into_iter()
    .find_map(|(end, word)| {
        let end = end?;
        let found = compare(sides, route, end)?;
        let limit = |share: f64| share + MAX_GROWTH;
        found.exceeds(limit).then(|| {
            GateFailure::Size(format!(
                "{}answers are {word}: {} have {} bytes, or {}; up to {:.0} of 1000 pass",
                scope.prefix(),
                found.text(),
                end.text(),
                match end {
                    End::UpTo(_) => "up to four times as many on the others",
                    End::From(_) => "a quarter or more of it on the others",
                },
                limit(found.others.share()) * 1_000.0
            ))
        })
    })
}

fn compare(sides: &ComparedReports<'_>, route: &str, end: End) -> Option<Difference> {
    let hits = |node: &Traffic, end: End| Totals::new(std::slice::from_ref(node), route).hits(end);
    sides.compare(
        Direction::Growth,
        |node| hits(node, end),
        |node| hits(node, end.wider()),
    )
}

/// Number of a route's responses by size class.
struct Totals([u64; CLASSES as usize]);

impl Totals {
    fn new(nodes: &[Traffic], route: &str) -> Self {
        let mut totals = [0_u64; CLASSES as usize];
        let routes = nodes.iter().filter_map(|node| node.routes.get(route));
        for (class, count) in routes.flat_map(|route| &route.sizes) {
            if let Some(total) = totals.get_mut(usize::from(*class)) {
                *total = total.saturating_add(*count);
            }
        }
        Self(totals)
    }

    fn hits(&self, end: End) -> Hits {
        let Self(totals) = self;
        let sum = |counts: &[u64]| {
            counts
                .iter()
                .fold(0, |sum: u64, count| sum.saturating_add(*count))
        };
        let counted = match end {
            End::UpTo(class) => totals.get(..=usize::from(class)),
            End::From(class) => totals.get(usize::from(class)..),
        };
        Hits {
            hits: counted.map_or(0, sum),
            total: sum(totals),
        }
    }

    fn share(&self, end: End) -> f64 {
        let Hits { hits, total } = self.hits(end);
        float(hits) / float(total.max(1))
    }
}

impl End {
    /// Extends the range by a factor of four in size.
    fn wider(self) -> Self {
        match self {
            Self::UpTo(class) => Self::UpTo(class + FACTOR_CLASSES),
            Self::From(class) => Self::From(class - FACTOR_CLASSES),
        }
    }

    /// The range in bytes, as text.
    fn text(self) -> String {
        match self {
            Self::UpTo(0) => "0".to_owned(),
            Self::UpTo(class) => format!("up to {}", (1_u64 << class) - 1),
            Self::From(class) => format!("{} or more", 1_u64 << class.saturating_sub(1)),
        }
    }
}
