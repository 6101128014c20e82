//! Sums of a window's steps, compared with the window a week before.

use control_domain::{CountedRequests, RouteCounts, StepTraffic, TrafficWindow};
use control_store::{PackedStep, PackedTotal, StoreError};
use control_wire::NodeId;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Maximum number of listed label values.
const MAX_GROUPS: usize = 1_000;

/// Requests of a period, and of the same period a week before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrafficFigures {
    /// Requests of the period.
    pub counted: CountedRequests,
    /// Requests a week before; `None` if the counts do not cover that period.
    pub week_before: Option<CountedRequests>,
}

/// Requests of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrafficPoint {
    /// Start of the step.
    pub at: Timestamp,
    /// `None` if no node reported requests.
    pub counted: Option<CountedRequests>,
    /// Requests of the same step a week before; `None` for steps of five minutes.
    pub week_before: Option<CountedRequests>,
}

/// Requests of a route, or of the nodes with one value of a label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedTraffic {
    /// Name of the route, or value of the label.
    pub name: String,
    /// Requests of the route or label value in the period.
    pub figures: TrafficFigures,
}

/// Rows of a window and of the window a week before, without nodes.
#[derive(Debug)]
pub(super) struct TotalPeriods {
    pub(super) window: TrafficWindow,
    pub(super) earlier: TrafficWindow,
    pub(super) steps: Vec<PackedTotal>,
    pub(super) earlier_steps: Vec<PackedTotal>,
}

/// Requests by start of step.
type StepTotals = BTreeMap<Timestamp, CountedRequests>;

/// Rows of a window and of the window a week before.
#[derive(Debug)]
pub(super) struct Periods {
    pub(super) window: TrafficWindow,
    pub(super) earlier: TrafficWindow,
    pub(super) steps: Vec<PackedStep>,
    pub(super) earlier_steps: Vec<PackedStep>,
    /// Values of the label that nodes are grouped by.
    pub(super) values: BTreeMap<NodeId, String>,
}

/// Figures of a window, compared with the window a week before.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) total: TrafficFigures,
    pub(super) steps: Vec<TrafficPoint>,
    pub(super) routes: Vec<NamedTraffic>,
    /// All nodes, most requests first.
    pub(super) nodes: Vec<(NodeId, TrafficFigures)>,
    pub(super) groups: Vec<NamedTraffic>,
}

/// Sums over one window.
#[derive(Debug, Default)]
struct Sums {
    all: StepTraffic,
    totals: StepTotals,
}

impl Periods {
    pub(super) fn summary(&self) -> Result<Summary, StoreError> {
        let Self {
            window,
            earlier,
            steps,
            earlier_steps,
            values,
        } = self;
        let now = Sums::new(steps)?;
        let before = Sums::new(earlier_steps)?;
        let before = is_complete(&before.totals, *earlier).then_some(before);
        let earlier_totals = before.as_ref().map(|sums| &sums.totals);
        let points = points(*window, *earlier, &now.totals, earlier_totals);
        let earlier_all = before.as_ref().map(|sums| &sums.all);
        let earlier_routes = earlier_all.map(|all| &all.routes);
        let earlier_nodes = earlier_all.map(|all| &all.nodes);
        let earlier_groups = earlier_nodes.map(|nodes| by_value(nodes, values));
        let mut groups = named(by_value(&now.all.nodes, values), earlier_groups.as_ref());
        groups.truncate(MAX_GROUPS);
        Ok(Summary {
            total: TrafficFigures {
                counted: now.all.routes.total(),
                week_before: earlier_routes.map(RouteCounts::total),
            },
            steps: points,
            routes: named(
                now.all.routes.routes.clone(),
                earlier_routes.map(|routes| &routes.routes),
            ),
            nodes: with_week_before(now.all.nodes, earlier_nodes),
            groups,
        })
    }
}

impl TotalPeriods {
    /// Total figures of the window, and its steps, compared with a week before.
    pub(super) fn totals(&self) -> Result<(TrafficFigures, Vec<TrafficPoint>), StoreError> {
        let Self {
            window,
            earlier,
            steps,
            earlier_steps,
        } = self;
        let (now, before) = (step_totals(steps)?, step_totals(earlier_steps)?);
        let before = is_complete(&before, *earlier).then_some(before);
        let figures = TrafficFigures {
            counted: total(&now),
            week_before: before.as_ref().map(total),
        };
        Ok((figures, points(*window, *earlier, &now, before.as_ref())))
    }
}

impl Sums {
    fn new(steps: &[PackedStep]) -> Result<Self, StoreError> {
        let mut sums = Self::default();
        for step in steps {
            let traffic = step.traffic()?;
            sums.totals.insert(step.at, traffic.routes.total());
            sums.all.add(&traffic);
        }
        sums.all.routes.bound();
        Ok(sums)
    }
}

fn step_totals(steps: &[PackedTotal]) -> Result<StepTotals, StoreError> {
    let totals = steps.iter().map(|step| Ok((step.at, step.requests()?)));
    totals.collect()
}

fn total(steps: &StepTotals) -> CountedRequests {
    let mut total = CountedRequests::default();
    for counted in steps.values() {
        total.add(counted);
    }
    total
}

/// Returns true if counts exist from the start of the window on, as the comparison requires.
fn is_complete(totals: &StepTotals, window: TrafficWindow) -> bool {
    totals.contains_key(&window.from)
}

/// The steps of a window, each with the step a week before if both windows have the same step
/// length.
fn points(
    window: TrafficWindow,
    earlier: TrafficWindow,
    now: &StepTotals,
    before: Option<&StepTotals>,
) -> Vec<TrafficPoint> {
    let before = before.filter(|_| window.step == earlier.step);
    let points = window.steps().map(|at| {
        let then = earlier.from.checked_add(at.duration_since(window.from));
        let found = before.zip(then.ok());
        TrafficPoint {
            at,
            counted: now.get(&at).copied(),
            week_before: found.and_then(|(totals, then)| totals.get(&then).copied()),
        }
    });
    points.collect()
}

fn by_value(
    nodes: &BTreeMap<NodeId, CountedRequests>,
    values: &BTreeMap<NodeId, String>,
) -> BTreeMap<String, CountedRequests> {
    let mut groups = BTreeMap::<String, CountedRequests>::new();
    for (node, counted) in nodes {
        if let Some(value) = values.get(node) {
            groups.entry(value.clone()).or_default().add(counted);
        }
    }
    groups
}

/// Combines figures with those of a week before, most requests first.
fn with_week_before<K: Ord + Clone>(
    now: BTreeMap<K, CountedRequests>,
    before: Option<&BTreeMap<K, CountedRequests>>,
) -> Vec<(K, TrafficFigures)> {
    let rows = now.into_iter().map(|(key, counted)| {
        let week_before = before.and_then(|before| before.get(&key).copied());
        let figures = TrafficFigures {
            counted,
            week_before,
        };
        (key, figures)
    });
    let mut rows: Vec<(K, TrafficFigures)> = rows.collect();
    rows.sort_by_key(|(_, figures)| Reverse(figures.counted.requests));
    rows
}

fn named(
    now: BTreeMap<String, CountedRequests>,
    before: Option<&BTreeMap<String, CountedRequests>>,
) -> Vec<NamedTraffic> {
    let rows = with_week_before(now, before).into_iter();
    rows.map(|(name, figures)| NamedTraffic { name, figures })
        .collect()
}
