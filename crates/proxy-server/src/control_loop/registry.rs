//! Metrics and state of a process that starts.

use crate::runtime::system_clock;
use proxy_errors::Reason;
use proxy_telemetry::{DEFAULT_MAX_SERIES, Lifecycle, Registry, RegistrySettings};
use std::sync::{Arc, LazyLock};

static REASONS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| Reason::ALL.iter().map(|reason| reason.as_str()).collect());

/// Metrics of a process without requests yet.
pub(crate) fn new_registry() -> Arc<Registry> {
    let settings = RegistrySettings {
        reasons: &REASONS,
        max_series: DEFAULT_MAX_SERIES,
    };
    Arc::new(Registry::new(settings))
}

/// The state of a process with this version and commit, which starts now.
pub(crate) fn new_lifecycle(
    version: &'static str,
    commit: &'static str,
    registry: &Arc<Registry>,
) -> Arc<Lifecycle> {
    Arc::new(Lifecycle::new(
        version,
        commit,
        Arc::clone(registry),
        system_clock::now(),
        system_clock::since_boot,
    ))
}
