//! Every fixture has its expected result: a model, a report, warnings, a migrated text.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod support;

use proxy_config::{Severity, format, load, migrate, parse};
use std::fmt::Write;
use support::{all, compare, files};

#[test]
fn every_valid_file_is_loaded_without_diagnostics() {
    all(files("valid").iter().map(|path| match load(path) {
        Ok(loaded) if loaded.warnings.is_empty() => Ok(()),
        Ok(loaded) => Err(loaded.warnings.to_string()),
        Err(report) => Err(report.to_string()),
    }));
}

#[test]
fn every_invalid_file_is_refused_with_the_expected_report() {
    all(files("invalid").iter().map(|path| match load(path) {
        Ok(_) => Err(format!("{} was loaded", path.display())),
        Err(report) => compare(path, &report.to_string()),
    }));
}

#[test]
fn every_doubtful_file_is_loaded_with_the_expected_warnings() {
    all(files("warnings").iter().map(|path| {
        let loaded = load(path).map_err(|report| report.to_string())?;
        let faults = loaded.warnings.faults();
        assert!(
            faults
                .iter()
                .all(|fault| fault.severity() == Severity::Warning)
        );
        compare(path, &loaded.warnings.to_string())
    }));
}

#[test]
fn every_old_file_is_migrated_as_expected() {
    all(files("migrate").iter().map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let migrated = migrate(&text, "old.kdl").map_err(|report| report.to_string())?;
        let again = migrate(&migrated.text, "new.kdl").map_err(|report| report.to_string())?;
        assert_eq!(
            again.text,
            migrated.text,
            "{} is not settled",
            path.display()
        );
        let mut actual = migrated.text;
        for note in migrated.notes {
            writeln!(actual, "\n=> {note}").unwrap();
        }
        compare(path, &actual)
    }));
}

#[test]
fn a_layout_is_settled_keeps_comments_and_can_still_be_loaded() {
    let mut paths = files("valid");
    paths.extend(files("warnings"));
    paths.extend(files("../../examples/configs"));
    all(paths.iter().map(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        let formatted = format(&text, "x.kdl").map_err(|report| report.to_string())?;
        let again = format(&formatted, "x.kdl").map_err(|report| report.to_string())?;
        assert_eq!(again, formatted, "{} is not settled", path.display());
        let marks = |text: &str| text.matches("//").count() + text.matches("/*").count();
        assert_eq!(marks(&formatted), marks(&text), "{}", path.display());
        match (parse(&text, "x.kdl"), parse(&formatted, "x.kdl")) {
            (Ok(_), Err(report)) => Err(report.to_string()),
            _ => Ok(()),
        }
    }));
}
