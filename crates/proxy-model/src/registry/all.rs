//! The list of all rows.

use super::spec::SettingSpec;
use super::{
    admin, agents, circuit_breaker, config_tests, control_plane, health_check, limits,
    listener_tls, listeners, matches, observability, outlier_detection, policies, routes, system,
    top, upstreams,
};

/// All settings, in the order of the reference.
pub fn all() -> Vec<SettingSpec> {
    let files = [
        top::rows(),
        system::rows(),
        listeners::rows(),
        listener_tls::rows(),
        listener_tls::acme::rows(),
        routes::rows(),
        routes::answers::rows(),
        matches::rows(),
        policies::rows(),
        policies::access::rows(),
        policies::rewrite::rows(),
        policies::basic_auth::rows(),
        policies::jwt::rows(),
        policies::error_pages::rows(),
        policies::cors::rows(),
        policies::cache::rows(),
        circuit_breaker::rows(),
        upstreams::rows(),
        health_check::rows(),
        outlier_detection::rows(),
        agents::rows(),
        limits::rows(),
        admin::rows(),
        observability::rows(),
        observability::otlp::rows(),
        control_plane::rows(),
        config_tests::rows(),
    ];
    files.into_iter().flatten().collect()
}
