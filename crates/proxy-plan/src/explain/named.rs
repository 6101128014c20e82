//! A named part of the configuration.

use crate::plan::Plan;

/// A named part of the configuration, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// Name in the configuration.
    pub name: String,
    /// `file:line`.
    pub source: String,
}

impl Plan {
    /// The route with this index, with its place.
    pub(super) fn named_route(&self, position: usize) -> Option<Named> {
        let route = self.model.routes.get(position)?;
        Some(Named {
            name: route.id.clone(),
            source: self.model.sources.file_and_line(route.place),
        })
    }
}
