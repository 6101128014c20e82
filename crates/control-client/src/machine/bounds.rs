//! The bounds of a heartbeat.

/// Diagnostics per heartbeat at most.
const MAX_DIAGNOSTICS: usize = 100;
const MAX_DIAGNOSTIC_CHARS: usize = 1_000;

/// Truncates to the limits of a heartbeat.
pub(super) fn bound(diagnostics: &mut Vec<String>) {
    diagnostics.truncate(MAX_DIAGNOSTICS);
    for text in diagnostics {
        *text = text
            .chars()
            .filter(|c| *c != '\0')
            .take(MAX_DIAGNOSTIC_CHARS)
            .collect();
    }
}
