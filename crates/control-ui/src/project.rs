//! Pages of projects.

mod attention;
pub(crate) mod create;
pub(crate) mod delete;
pub(crate) mod list;
mod metric_query;
pub(crate) mod overview;
pub(crate) mod search;
pub(crate) mod settings;
pub(crate) mod traffic;
mod traffic_figures;
pub(crate) mod webhooks;
