//! Events of targets that are removed from rotation, or return to it.

use proxy_health::{HealthCause, HealthCauses};
use proxy_model::LogLevel;
use proxy_telemetry::EventFields;
use proxy_upstream::TargetState;
use std::sync::Arc;

/// A change of a target's health.
#[derive(Debug)]
pub(crate) struct TargetEvent {
    cause: HealthCause,
    upstream: Arc<str>,
    target: Arc<str>,
    /// The failure, if the change removes the target from rotation.
    error: Option<String>,
}

/// The changes of the target `label` of `upstream` between two checks.
pub(crate) fn changes(
    upstream: &Arc<str>,
    label: &Arc<str>,
    state: &TargetState,
    before: HealthCauses,
    after: HealthCauses,
) -> Vec<TargetEvent> {
    let changed = HealthCause::ALL.into_iter().filter(|cause| {
        messages(*cause).is_some() && before.contains(*cause) != after.contains(*cause)
    });
    let events = changed.map(|cause| TargetEvent {
        cause,
        upstream: Arc::clone(upstream),
        target: Arc::clone(label),
        error: after.contains(cause).then(|| {
            state
                .unhealthy_reason()
                .map_or_else(String::new, |it| it.last_error)
        }),
    });
    events.collect()
}

/// The messages for the removal of a target for a cause, and for its return. `None` for causes with
/// separate events.
const fn messages(cause: HealthCause) -> Option<(&'static str, &'static str)> {
    match cause {
        HealthCause::ActiveCheck => Some((
            "a target fails its health checks",
            "a target passes its health checks",
        )),
        HealthCause::Ejection => Some((
            "a target is ejected: requests to it have failed",
            "the ejection of a target has ended",
        )),
        HealthCause::Connect => Some((
            "a target cannot be connected to; it is left out while another one serves",
            "a target accepts connections again",
        )),
        HealthCause::Dns | HealthCause::Draining => None,
    }
}

impl TargetEvent {
    /// Level, message and fields, for the error log.
    pub(crate) fn record(&self) -> (LogLevel, &'static str, EventFields) {
        let (left_out, serves) = messages(self.cause).unwrap_or_default();
        let mut fields = EventFields::default();
        fields.text("upstream", &self.upstream);
        fields.text("target", &self.target);
        match &self.error {
            Some(error) => {
                fields.text("error", error);
                (LogLevel::Warn, left_out, fields)
            }
            None => (LogLevel::Info, serves, fields),
        }
    }

    /// Writes the event to the process's events. Health checks have already written theirs.
    pub(crate) fn log(&self) {
        let Self {
            cause,
            upstream,
            target,
            error,
        } = self;
        let (left_out, serves) = messages(*cause).unwrap_or_default();
        match (cause, error) {
            (HealthCause::ActiveCheck, _) => {}
            (_, Some(error)) => tracing::warn!(%upstream, %target, error, "{left_out}"),
            (_, None) => tracing::info!(%upstream, %target, "{serves}"),
        }
    }
}
