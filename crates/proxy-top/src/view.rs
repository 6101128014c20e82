//! The views: tables of an interval.

mod limits;
mod routes;
mod sorting;
mod summary;
mod time;
mod upstreams;

pub(crate) use sorting::Sorting;
pub(crate) use summary::summary;

use crate::interval::Interval;
use crate::table::Table;

/// A table to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum View {
    Routes,
    Upstreams,
    Limits,
    Time,
}

impl View {
    pub(crate) const ALL: [Self; 4] = [Self::Routes, Self::Upstreams, Self::Limits, Self::Time];

    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::Routes => "routes",
            Self::Upstreams => "upstreams",
            Self::Limits => "limits",
            Self::Time => "time",
        }
    }

    pub(crate) fn table(self, interval: &Interval, sorting: Sorting) -> Table {
        match self {
            Self::Routes => routes::table(interval, sorting),
            Self::Upstreams => upstreams::table(interval, sorting),
            Self::Limits => limits::table(interval, sorting),
            Self::Time => time::table(interval, sorting),
        }
    }

    /// The view `steps` to the right.
    pub(crate) fn moved(self, steps: usize) -> Self {
        let position = Self::ALL.iter().position(|view| *view == self);
        let moved = (position.unwrap_or_default() + steps) % Self::ALL.len();
        Self::ALL.get(moved).copied().unwrap_or(self)
    }
}
