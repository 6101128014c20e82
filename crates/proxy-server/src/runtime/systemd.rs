//! Notifications to the service manager.

use sd_notify::NotifyState;

/// Notifies systemd, if `NOTIFY_SOCKET` is set.
pub(crate) fn tell(state: NotifyState<'_>) {
    tell_all(&[state]);
}

/// Notifies systemd of a beginning reload, with its time, as `Type=notify-reload` requires.
pub(crate) fn tell_reload() {
    match NotifyState::monotonic_usec_now() {
        Ok(since) => tell_all(&[NotifyState::Reloading, since]),
        Err(_) => tell(NotifyState::Reloading),
    }
}

fn tell_all(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!(%error, "cannot tell systemd");
    }
}
