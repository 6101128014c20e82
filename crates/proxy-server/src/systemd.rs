//! What the service manager is told, if there is one.

use sd_notify::NotifyState;

/// Tells systemd, where `NOTIFY_SOCKET` says how.
pub(crate) fn tell(state: NotifyState<'_>) {
    tell_all(&[state]);
}

/// Tells it of a reload that begins, and since when: `Type=notify-reload` asks for that.
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
