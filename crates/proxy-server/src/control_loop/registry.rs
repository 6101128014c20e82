//! Metrics of a process.

use proxy_errors::Reason;
use proxy_telemetry::{DEFAULT_MAX_SERIES, Registry, RegistrySettings};
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
