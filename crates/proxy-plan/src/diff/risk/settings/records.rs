//! Risks of changes to logs, exports and recordings.

use super::values::{Classified, becomes, instead, listed, missing, number};
use crate::diff::parts::Change;
use crate::diff::risk::class::RiskClass;
use crate::diff::setting_change::SettingChange;
use proxy_model::registry::observability::{self, otlp};
use serde_json::Value;

/// Minimum share of recorded requests, in percent, of a recording that counts as one of all
/// clients.
const MOST_REQUESTS: f64 = 50.0;

pub(super) fn risk(change: &SettingChange) -> Classified {
    let row = change.row;
    let redacted = [
        observability::REDACT_QUERY.path,
        observability::RECORDING_REDACT.path,
    ];
    let places = [
        observability::ACCESS_PATH.path,
        observability::ERROR_PATH.path,
        otlp::ENDPOINT.path,
        otlp::SERVICE_NAME.path,
    ];
    let exports = [otlp::TRACES.path, otlp::METRICS.path];
    let text = if row == observability::ACCESS_ENABLED.path
        && change.change != Change::Removed
        && change.after.contains(&Value::Bool(false))
    {
        "no longer writes an access log".to_owned()
    } else if row == observability::ERROR_LEVEL.path && becomes(change, "error") {
        format!("leaves out warnings and reloads: {}", instead(change))
    } else if places.contains(&row) && change.change == Change::Changed {
        format!("goes to another place: {}", instead(change))
    } else if row == otlp::ENDPOINT.path && change.change == Change::Removed {
        "no longer exports traces and metrics".to_owned()
    } else if exports.contains(&row) && change.after.contains(&Value::Bool(false)) {
        format!("exports less: {}", instead(change))
    } else if redacted.contains(&row) && !missing(change).is_empty() {
        format!("no longer redacts {}", listed(&missing(change)))
    } else if row == observability::RECORDING_SAMPLE.path
        && number(&change.before).unwrap_or_default() < MOST_REQUESTS
        && MOST_REQUESTS <= number(&change.after).unwrap_or_default()
    {
        format!("records the heads of most requests: {}", instead(change))
    } else {
        return None;
    };
    Some((RiskClass::RecordsChanged, text))
}
