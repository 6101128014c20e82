//! The reference page of diagnostic codes.

use crate::diagnostic_code::{DiagnosticCode, Severity};

/// `docs/reference/config-faults.md`: every code with its meaning.
pub fn faults_md() -> String {
    let mut page = String::from(
        "# Faults and warnings of a configuration\n\n\
         Made from `proxy-config`; do not edit. The codes never change.\n",
    );
    for (severity, heading) in [
        (Severity::Error, "Errors: the configuration cannot be used"),
        (
            Severity::Warning,
            "Warnings: it can be used, and may not do what was meant",
        ),
    ] {
        page.push_str(&section(severity, heading));
    }
    page
}

fn section(severity: Severity, heading: &str) -> String {
    let codes = DiagnosticCode::ALL
        .iter()
        .filter(|code| code.severity() == severity);
    let rows: Vec<String> = codes
        .map(|code| format!("| `{code}` | {} |\n", code.meaning()))
        .collect();
    format!(
        "\n## {heading}\n\n| code | meaning |\n|---|---|\n{}",
        rows.concat()
    )
}
