//! Checks of a configuration, by the same code as in the proxy.

mod certificates;
pub(crate) mod compiler;
mod diagnostic;
pub(crate) mod diff;
pub(crate) mod explanation;
pub(crate) mod replay;

pub use diagnostic::Diagnostic;

use certificates::missing_certificates;
use control_bundle::{ENTRY_FILE, Files};
use control_wire::CertificateId;
use proxy_config::{DiagnosticCode, Loaded, Report, Severity, load_bundle};
use proxy_model::Model;
use proxy_plan::failed_tests;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of kept diagnostics per configuration.
const MAX_DIAGNOSTICS: usize = 100;
/// Maximum size of their texts together: a message may quote a text of any length.
const MAX_DIAGNOSTIC_BYTES: usize = 64 * 1024;

/// Result of checking a configuration.
#[derive(Debug)]
pub(crate) struct Checked {
    /// `None` for a configuration with errors.
    pub(crate) model: Option<Arc<Model>>,
    /// Errors and warnings, at most [`MAX_DIAGNOSTICS`].
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// Number of warnings that a project's policy counts. Warnings about node allowances are left
    /// out: each node decides on them.
    pub(crate) warnings: usize,
}

/// Loads the configuration that starts in [`ENTRY_FILE`], and runs its tests. Reads no files
/// outside `files`.
pub(crate) fn check(files: &Files) -> Checked {
    let loaded = load_bundle(proxy_config::Files::Memory(files), ENTRY_FILE).and_then(|loaded| {
        let failed = failed_tests(&loaded.model);
        loaded.unless_failed(failed)
    });
    let (model, report) = match loaded {
        Ok(Loaded { model, warnings }) => (Some(Arc::new(model)), warnings),
        Err(report) => (None, report),
    };
    let faults = report.faults().iter();
    let counted = faults.filter(|found| rank(found) == Rank::Warning).count();
    Checked {
        model,
        diagnostics: diagnostics(&report),
        // A dropped fault may be a warning, so each one counts.
        warnings: counted + report.dropped(),
    }
}

/// Like [`check`], and refuses certificates that were deleted. `certificates` are those named by
/// the files that exist in the project.
pub(crate) fn check_with(files: &Files, certificates: &BTreeSet<CertificateId>) -> Checked {
    let mut checked = check(files);
    let missing = checked
        .model
        .iter()
        .flat_map(|model| missing_certificates(model, files, certificates))
        .take(MAX_DIAGNOSTICS);
    let missing: Vec<Diagnostic> = missing.collect();
    if !missing.is_empty() {
        checked.model = None;
        checked.diagnostics.extend(missing);
    }
    checked
}

/// Importance of a diagnostic, highest first, when there are too many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Error,
    Warning,
    /// A warning that a node must allow a setting.
    NodeAllowance,
}

fn rank(found: &proxy_config::Diagnostic) -> Rank {
    match found.severity() {
        Severity::Error => Rank::Error,
        Severity::Warning if found.code == DiagnosticCode::NodeAllowance => Rank::NodeAllowance,
        Severity::Warning => Rank::Warning,
    }
}

/// The kept diagnostics, in the order of the source text. If there are too many, errors displace
/// warnings, and warnings displace those about node allowances.
fn diagnostics(report: &Report) -> Vec<Diagnostic> {
    let sources = report.sources();
    let mut bytes = 0;
    let mut ranked: Vec<_> = report.faults().iter().enumerate().collect();
    ranked.sort_by_key(|(_, found)| rank(found));
    let fits = ranked.into_iter().filter(|(_, found)| {
        let help = found.help.as_ref().map_or(0, String::len);
        let more = bytes + found.message.len() + found.label.len() + help;
        let fits = more <= MAX_DIAGNOSTIC_BYTES;
        if fits {
            bytes = more;
        }
        fits
    });
    let mut kept: Vec<_> = fits.take(MAX_DIAGNOSTICS).collect();
    kept.sort_by_key(|(place, _)| *place);
    let kept = kept.into_iter();
    let kept = kept.map(|(_, found)| Diagnostic::in_sources(found, sources));
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(text: &str) -> Files {
        [(ENTRY_FILE.to_owned(), text.as_bytes().to_vec())].into()
    }

    #[test]
    fn a_diagnostic_has_its_place_and_a_remedy() {
        let checked = check(&files("limits {\n    max-heder-count 5\n}"));
        assert!(checked.model.is_none());
        let found = checked.diagnostics.first().unwrap();
        assert_eq!(found.code, "unknown-setting");
        assert_eq!((found.line, found.column), (2, 5));
        assert_eq!(found.file, ENTRY_FILE);
        assert!(found.help.is_some() || !found.label.is_empty());
    }

    #[test]
    fn a_configuration_whose_test_fails_is_refused() {
        let checked = check(&files(
            r#"
            listeners { listener "main" { address "127.0.0.1:8080" } }
            routes { route "all" { upstream "app" } }
            upstreams { upstream "app" { target "10.0.0.1:3000" } }
            tests { test "nobody gets in" { request "GET" "/"; expect { status 404 } } }
            "#,
        ));
        assert!(checked.model.is_none());
        let found = checked.diagnostics.first().unwrap();
        assert_eq!((found.code.as_str(), found.line), ("config-test-failed", 5));
    }

    #[test]
    fn hostile_text_is_refused_in_bounds() {
        let levels = "a {\n".repeat(10_000) + &"}\n".repeat(10_000);
        let large = "// nothing\n".repeat(10_000_000);
        let many = "limits { wrong 1; }\n".repeat(100_000);
        for (text, code) in [
            (levels, "nesting-too-deep"),
            (large, "file-too-large"),
            (many, "unknown-setting"),
        ] {
            let checked = check(&files(&text));
            assert!(checked.model.is_none(), "{code}");
            assert!(checked.diagnostics.len() <= MAX_DIAGNOSTICS);
            let codes: Vec<&str> = checked
                .diagnostics
                .iter()
                .map(|found| found.code.as_str())
                .collect();
            assert!(codes.contains(&code), "{codes:?}");
        }
    }

    #[test]
    fn diagnostics_with_long_quotations_are_bounded_in_bytes() {
        let name = "x".repeat(10_000);
        let settings = (0..MAX_DIAGNOSTICS).map(|number| format!("    {name}{number} 1"));
        let settings: Vec<String> = settings.collect();
        let text = format!("limits {{\n{}\n}}", settings.join("\n"));
        let checked = check(&files(&text));
        let sizes = checked.diagnostics.iter().map(|found| {
            let help = found.help.as_ref().map_or(0, String::len);
            found.message.len() + found.label.len() + help
        });
        let longest = sizes.clone().max().unwrap();
        assert!(name.len() < longest, "{longest}");
        let bytes: usize = sizes.sum();
        let is_full = MAX_DIAGNOSTIC_BYTES - longest <= bytes;
        assert!(is_full && bytes <= MAX_DIAGNOSTIC_BYTES, "{bytes}");
    }

    #[test]
    fn many_warnings_for_nodes_hide_no_other_one() {
        let target = |number: u32| format!("target \"127.0.0.1:{}\"", 5_000 + number);
        let targets: Vec<String> = (0..120).map(target).collect();
        let checked = check(&files(&format!(
            r#"
            upstreams {{ upstream "loop" {{ {} }} }}
            listeners {{ listener "main" {{ address "127.0.0.1:8080" }} }}
            routes {{ route "all" {{ upstream "loop" }} }}
            upstreams {{ upstream "unused" {{ target "10.0.0.1:80" }} }}
            "#,
            targets.join("; ")
        )));
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics);
        assert_eq!(checked.warnings, 1, "an upstream is not used");
        assert_eq!(checked.diagnostics.len(), MAX_DIAGNOSTICS);
        let shown = checked.diagnostics.iter();
        let mut shown = shown.filter(|found| found.code != "node-allowance");
        let unused = shown.next().unwrap();
        assert!(unused.message.contains("unused"), "{unused:?}");
        let lines: Vec<u32> = checked.diagnostics.iter().map(|one| one.line).collect();
        assert!(lines.is_sorted(), "in the order of the text");
    }

    #[test]
    fn diagnostics_that_were_not_kept_count_as_warnings() {
        let target = |number: u32| format!("target \"127.0.{}.{}:80\"", number / 256, number % 256);
        let targets: Vec<String> = (0..5_001).map(target).collect();
        let targets = targets.join("\n");
        let checked = check(&files(&format!(
            r#"
            upstreams {{ upstream "one" {{ {targets} }}; upstream "two" {{ {targets} }} }}
            listeners {{ listener "main" {{ address "127.0.0.1:8080" }} }}
            routes {{
                route "one" {{ matches {{ path "/" }}; upstream "one" }}
                route "two" {{ upstream "two" }}
            }}
            "#
        )));
        assert!(checked.model.is_some(), "{:?}", checked.diagnostics.first());
        assert!(checked.warnings > 0, "any of them may be one that counts");
    }

    #[test]
    fn nothing_outside_of_the_bundle_is_read() {
        for name in ["/etc/hostname", "../../../etc/hostname", "/etc/*"] {
            let checked = check(&files(&format!("include {name:?}")));
            let codes = checked.diagnostics.iter().map(|found| found.code.as_str());
            assert!(codes.eq(["bundle-reach"]), "{name}");
        }
    }
}
