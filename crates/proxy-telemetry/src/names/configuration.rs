//! Metrics of reloads, upgrades and the control plane.

use crate::names::metric::{CounterOf, GaugeOf};

/// Reloads of the configuration.
pub const CONFIG_RELOADS_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_config_reloads_total",
    &["result"],
    "Reloads of the configuration, by result: success or failure.",
);
/// Upgrades of the binary.
pub const UPGRADES_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_upgrades_total",
    &["result"],
    "Upgrades of the binary: success, counted by the process that took over, or failure, by the one \
     that serves on.",
);
/// Generation of the active configuration.
pub const CONFIG_GENERATION: GaugeOf<0> = GaugeOf::new(
    "proxy_config_generation",
    &[],
    "Number of the configuration in force, 1 at start.",
);
/// Time at which the active configuration was applied.
pub const CONFIG_LAST_RELOAD_TIMESTAMP_SECONDS: GaugeOf<0> = GaugeOf::new(
    "proxy_config_last_reload_timestamp_seconds",
    &[],
    "Unix time at which the configuration in force was loaded.",
);
/// 1 if the control plane answers.
pub const CONTROL_PLANE_CONNECTED: GaugeOf<0> = GaugeOf::new(
    "proxy_control_plane_connected",
    &[],
    "1 while the control plane answers and accepts the node's credential, else 0.",
);
/// Time of the control plane's last answer.
pub const CONTROL_PLANE_LAST_CONTACT_TIMESTAMP_SECONDS: GaugeOf<0> = GaugeOf::new(
    "proxy_control_plane_last_contact_timestamp_seconds",
    &[],
    "Unix time of the control plane's last answer, by the node's clock; 0 before the first.",
);
/// The active bundle.
pub const CONTROL_PLANE_BUNDLE_GENERATION: GaugeOf<0> = GaugeOf::new(
    "proxy_control_plane_bundle_generation",
    &[],
    "Counter of the order whose bundle is in force; 0 while the node serves its own file.",
);
/// Orders and bundles that the node rejected.
pub const CONTROL_PLANE_REFUSALS_TOTAL: CounterOf<1> = CounterOf::new(
    "proxy_control_plane_refusals_total",
    &["reason"],
    "Orders and bundles that the node rejected, by reason; one that comes again unchanged counts once.",
);
