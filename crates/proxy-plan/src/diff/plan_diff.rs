//! The whole difference between two plans.

use super::draining::Drained;
use super::parts::PartChange;
use super::region::Region;
use super::risk::Risk;
use super::search::DiffLimit;
use super::setting_change::SettingChange;
use std::collections::BTreeSet;

/// The difference between two plans.
#[derive(Clone, Debug)]
pub struct PlanDiff {
    /// Requests that are answered differently. Complete, except for regexes and reached limits.
    pub regions: Vec<Region>,
    /// Pairs of a route before and a route after that answers some of the same requests: only the
    /// name differs, the service is the same, and no setting in a class of risk differs.
    pub successors: BTreeSet<(String, String)>,
    /// Ids of routes that take no request after, though they did before or are new.
    pub unreachable: Vec<String>,
    /// Parts that were added or removed, in order.
    pub parts: Vec<PartChange>,
    /// Effective settings that differ, by path.
    pub settings: Vec<SettingChange>,
    /// Connections that a reload ends.
    pub drained: Vec<Drained>,
    /// Changes that may harm clients, most severe class first. Empty exactly if every change is
    /// known to be harmless.
    pub risks: Vec<Risk>,
    /// Regexes that were compared by a sample of their paths, as written.
    pub sampled_regexes: Vec<String>,
    /// Limits of the comparison that were reached.
    pub limits: Vec<DiffLimit>,
}

impl PlanDiff {
    /// Returns true if no difference was found, and the comparison was whole.
    #[must_use]
    pub fn is_same(&self) -> bool {
        let Self {
            regions,
            successors: _,
            unreachable,
            parts,
            settings,
            drained: _,
            risks: _,
            sampled_regexes: _,
            limits,
        } = self;
        regions.is_empty()
            && unreachable.is_empty()
            && parts.is_empty()
            && settings.is_empty()
            && limits.is_empty()
    }
}
