//! Properties that hold for any input, checked by the fuzz target and by the replay of its corpus.

use proxy_config::{Files, Loaded, Report, load_from, migrate};
use proxy_model::effective;
use std::collections::BTreeMap;

/// Every place in a report lies within its file, and a loaded configuration has the same model
/// after migration.
pub(crate) fn config(bytes: &[u8]) {
    let loaded = load(bytes);
    let report = match &loaded {
        Ok(loaded) => &loaded.warnings,
        Err(report) => report,
    };
    assert_eq!(report.has_errors(), loaded.is_err());
    places_are_in_the_text(report);
    assert_eq!(report.to_string().is_empty(), report.is_empty());
    assert!(report.to_json().is_object());
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    match (migrate(text, "main.kdl"), loaded) {
        (Ok(migrated), Ok(loaded)) => {
            let again = load(migrated.text.as_bytes());
            let again = again.unwrap_or_else(|report| panic!("{text}\n{report}"));
            assert_eq!(values(&again), values(&loaded), "{text}\n{}", migrated.text);
        }
        (Ok(_), Err(_)) => {}
        (Err(report), loaded) => {
            assert!(loaded.is_err(), "{text}\n{report}");
            places_are_in_the_text(&report);
        }
    }
}

fn load(bytes: &[u8]) -> Result<Loaded, Report> {
    let files = BTreeMap::from([("main.kdl".to_owned(), bytes.to_vec())]);
    load_from(Files::Memory(&files), "main.kdl")
}

fn places_are_in_the_text(report: &Report) {
    for fault in report.faults() {
        let file = report
            .sources()
            .file(fault.place.file)
            .map(|file| &file.text);
        let start = usize::try_from(fault.place.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(usize::try_from(fault.place.len).unwrap_or(usize::MAX));
        assert!(
            file.is_some_and(|text| text.get(start..end).is_some()),
            "{fault:?}"
        );
        assert!(fault.place.line > 0 && fault.place.column > 0, "{fault:?}");
    }
}

fn values(loaded: &Loaded) -> Vec<String> {
    let settings = effective(&loaded.model).into_iter();
    settings
        .map(|setting| format!("{} = {}", setting.path, setting.value))
        .collect()
}
