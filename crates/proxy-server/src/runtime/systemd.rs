//! Notifications to the service manager.

use sd_notify::NotifyState;

/// Notifies systemd, if `NOTIFY_SOCKET` is set.
pub(crate) fn notify(state: NotifyState<'_>) {
    notify_all(&[state]);
}

/// Notifies systemd that a reload begins, with the time, as `Type=notify-reload` requires.
pub(crate) fn notify_reload() {
    match NotifyState::monotonic_usec_now() {
        Ok(since) => notify_all(&[NotifyState::Reloading, since]),
        Err(_) => notify(NotifyState::Reloading),
    }
}

fn notify_all(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot notify systemd");
    }
}
