//! What the service manager is told, if there is one.

use sd_notify::NotifyState;

/// Tells systemd, where `NOTIFY_SOCKET` says how.
pub(crate) fn tell(state: &NotifyState<'_>) {
    if let Err(error) = sd_notify::notify(std::slice::from_ref(state)) {
        tracing::warn!(%error, "cannot tell systemd");
    }
}
