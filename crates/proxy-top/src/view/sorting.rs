//! The order of rows.

use std::cmp::Ordering;

/// The column that rows are sorted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sorting {
    /// Requests a second, or the share of a limit that is in use; the largest first.
    Load,
    /// Failures a second, or rejections; the largest first.
    Failures,
    /// The slowest first, by the 99th percentile; limits by their rejections.
    Slowness,
    Name,
}

impl Sorting {
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Load => "load",
            Self::Failures => "failures",
            Self::Slowness => "slowness",
            Self::Name => "name",
        }
    }

    pub(crate) const fn next(self) -> Self {
        match self {
            Self::Load => Self::Failures,
            Self::Failures => Self::Slowness,
            Self::Slowness => Self::Name,
            Self::Name => Self::Load,
        }
    }

    /// The order of two rows with these figures for load, failures and slowness; equal ones keep the order of names.
    fn order(self, one: [f64; 3], other: [f64; 3]) -> Ordering {
        let ([load, failures, slowness], [of_load, of_failures, of_slowness]) = (one, other);
        match self {
            Self::Load => of_load.total_cmp(&load),
            Self::Failures => of_failures.total_cmp(&failures),
            Self::Slowness => of_slowness.total_cmp(&slowness),
            Self::Name => Ordering::Equal,
        }
    }
}

/// The rows in an order, by their figures for load, failures and slowness.
pub(super) fn sorted<R>(
    mut rows: Vec<R>,
    sorting: Sorting,
    figures: impl Fn(&R) -> [f64; 3],
) -> Vec<R> {
    rows.sort_by(|one, other| sorting.order(figures(one), figures(other)));
    rows
}
