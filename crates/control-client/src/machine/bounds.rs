//! Limits on the contents of a heartbeat.

/// Maximum number of diagnostics in a heartbeat.
const MAX_DIAGNOSTICS: usize = 100;
const MAX_DIAGNOSTIC_CHARS: usize = 1_000;

/// Truncates diagnostics to the limits.
pub(super) fn truncate_diagnostics(diagnostics: &mut Vec<String>) {
    diagnostics.truncate(MAX_DIAGNOSTICS);
    for text in diagnostics {
        *text = text
            .chars()
            .filter(|c| *c != '\0')
            .take(MAX_DIAGNOSTIC_CHARS)
            .collect();
    }
}
