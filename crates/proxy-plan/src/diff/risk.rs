//! A change that may cause harm, with the rules that detect it.

pub(super) mod changes;
pub(super) mod class;
mod removed_tests;
pub(super) mod requests;
mod sent_requests;
mod settings;

use super::parts::PartChange;
use super::region::Region;
use super::search::DiffLimit;
use super::setting_change::SettingChange;
use class::RiskClass;
use proxy_model::Model;

/// A change that may harm clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Risk {
    /// Class; fixes the severity.
    pub class: RiskClass,
    /// The part of the configuration: `route api`, `listener main`.
    pub subject: String,
    /// The change, as a sentence without its full stop.
    pub change: String,
}

/// The parts of a comparison that risks depend on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared<'d> {
    pub(super) before: &'d Model,
    pub(super) after: &'d Model,
    pub(super) regions: &'d [Region],
    pub(super) unreachable: &'d [String],
    pub(super) settings: &'d [SettingChange],
    pub(super) parts: &'d [PartChange],
    /// Regexes were compared by samples.
    pub(super) is_sampled: bool,
    pub(super) limits: &'d [DiffLimit],
}
