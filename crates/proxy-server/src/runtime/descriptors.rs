//! Maximum number of connections by the limit of file descriptors.

use rustix::process::{Resource, getrlimit};

/// The effective limit on connections if `max` is configured, by the process's limit of open
/// files. Logs a warning if it lowers `max`.
pub(crate) fn max_connections(max: u32) -> u32 {
    let Some(descriptors) = getrlimit(Resource::Nofile).current else {
        return max;
    };
    let permitted = proxy_model::max_connections(descriptors);
    let permitted = u32::try_from(permitted).unwrap_or(u32::MAX);
    if max <= permitted {
        return max;
    }
    tracing::warn!(
        configured = max,
        in_force = permitted,
        descriptors,
        "max-total-connections is lowered to what the limit on open files allows"
    );
    permitted
}
