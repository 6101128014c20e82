//! Findings of the configuration check, shown at their lines.

use crate::view::phrase::sentence;
use control_app::Diagnostic;
use std::collections::BTreeMap;

/// Number of lines shown before and after a finding.
const CONTEXT_LINES: usize = 2;

/// A finding, with its place in the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    pub(crate) is_error: bool,
    pub(crate) message: String,
    /// Sentences about place and remedy.
    pub(crate) hints: Vec<String>,
    /// Place, such as `proxy.kdl:12`.
    pub(crate) place: String,
    /// Lines around the finding.
    pub(crate) lines: Vec<NumberedLine>,
}

/// A line of a file with its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NumberedLine {
    /// Number of the line, from 1.
    pub(crate) number: usize,
    pub(crate) text: String,
    /// Whether the finding concerns this line.
    pub(crate) is_own: bool,
}

/// Parses findings as stored in the database.
pub(crate) fn stored(diagnostics: &str) -> Vec<Diagnostic> {
    serde_json::from_str(diagnostics).unwrap_or_default()
}

/// Findings, errors first, each with the surrounding lines of `files`.
pub(crate) fn findings(
    diagnostics: &[Diagnostic],
    files: &BTreeMap<String, String>,
) -> Vec<Finding> {
    let mut found: Vec<Finding> = diagnostics
        .iter()
        .map(|one| Finding {
            is_error: one.severity == "error",
            message: one.message.clone(),
            hints: hints(one),
            place: format!("{}:{}", one.file, one.line),
            lines: files
                .get(&one.file)
                .map_or_else(Vec::new, |text| around(text, one.line)),
        })
        .collect();
    found.sort_by_key(|finding| !finding.is_error);
    found
}

fn hints(one: &Diagnostic) -> Vec<String> {
    let label = Some(one.label.as_str()).filter(|label| !label.is_empty());
    let texts = label.into_iter().chain(one.help.as_deref());
    texts.map(sentence).collect()
}

fn around(text: &str, line: u32) -> Vec<NumberedLine> {
    let line = usize::try_from(line).unwrap_or(usize::MAX);
    let first = line.saturating_sub(CONTEXT_LINES).max(1);
    let lines = text.lines().enumerate().skip(first - 1);
    let lines = lines.take(line.saturating_add(CONTEXT_LINES + 1).saturating_sub(first));
    let lines = lines.map(|(index, text)| NumberedLine {
        number: index + 1,
        text: text.to_owned(),
        is_own: index + 1 == line,
    });
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn place_and_remedy_are_separate_sentences() {
        let text = r#"{"code": "node-allowance", "severity": "warning", "message": "refused", "file": "proxy.kdl",
            "line": 1, "column": 1, "length": 1, "label": "nodes reject it", "help": "write `allow` there"}"#;
        let diagnostic: Diagnostic = serde_json::from_str(text).unwrap();
        let found = findings(&[diagnostic], &BTreeMap::new());
        assert_eq!(found[0].hints, ["Nodes reject it.", "Write `allow` there."]);
    }

    #[test]
    fn a_finding_has_the_lines_around_it() {
        let diagnostic = |severity: &str, line| Diagnostic {
            code: "unknown-setting".to_owned(),
            severity: severity.to_owned(),
            message: "unknown setting".to_owned(),
            file: "proxy.kdl".to_owned(),
            line,
            column: 1,
            length: 1,
            label: String::new(),
            help: None,
        };
        let files = [("proxy.kdl".to_owned(), "a\nb\nc\nd\ne\nf".to_owned())].into();
        let found = findings(&[diagnostic("warning", 1), diagnostic("error", 4)], &files);
        assert!(found[0].is_error && !found[1].is_error);
        let texts: Vec<&str> = found[0]
            .lines
            .iter()
            .map(|line| line.text.as_str())
            .collect();
        assert_eq!(texts, ["b", "c", "d", "e", "f"]);
        let own = |number, text: &str| NumberedLine {
            number,
            text: text.to_owned(),
            is_own: true,
        };
        assert_eq!(found[0].lines[2], own(4, "d"));
        assert_eq!(found[1].lines[0], own(1, "a"));
    }
}
