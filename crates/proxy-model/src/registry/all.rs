//! The list of all rows.

use super::spec::SettingSpec;
use super::{
    admin, agents, circuit_breaker, control_plane, health_check, limits, listener_tls, listeners,
    matches, observability, outlier_detection, policies, routes, system, top, upstreams,
};

/// All settings, in the order of the reference.
pub fn all() -> Vec<SettingSpec> {
    let files = [
        top::rows(),
        system::rows(),
        listeners::rows(),
        listener_tls::rows(),
        routes::rows(),
        matches::rows(),
        policies::rows(),
        circuit_breaker::rows(),
        upstreams::rows(),
        health_check::rows(),
        outlier_detection::rows(),
        agents::rows(),
        limits::rows(),
        admin::rows(),
        observability::rows(),
        control_plane::rows(),
    ];
    files.into_iter().flatten().collect()
}

/// Number of settings that are refused because they have no effect yet.
pub fn not_yet() -> usize {
    let all = all();
    all.iter().filter(|spec| spec.not_yet().is_some()).count()
}
