//! Text form of a bundle's diagnostics, like the output of `proxyd --test`.

use crate::ctl::lookup::text as raw_text;
use crate::ctl::output::escape::inline;
use serde_json::Value;
use std::borrow::Cow;
use std::fmt::Write as _;

/// Formats the diagnostics of `bundle`, with lines from `sources`: texts by file name.
pub(crate) fn render(bundle: &Value, sources: Option<&Value>) -> String {
    let diagnostics = bundle.get("diagnostics").and_then(Value::as_array);
    let all = diagnostics.into_iter().flatten();
    let pages = all.map(|diagnostic| page(diagnostic, sources));
    pages.collect::<Vec<_>>().join("\n")
}

fn text<'a>(diagnostic: &'a Value, field: &str) -> Cow<'a, str> {
    inline(raw_text(diagnostic, field))
}

fn page(diagnostic: &Value, sources: Option<&Value>) -> String {
    let number = |field: &str| diagnostic.get(field).and_then(Value::as_u64).unwrap_or(0);
    let (severity, file) = (text(diagnostic, "severity"), text(diagnostic, "file"));
    let label = text(diagnostic, "label");
    let (line, column) = (number("line"), number("column"));
    let sign = if severity == "error" { 'x' } else { '!' };
    let width = line.to_string().len();
    let mut page = format!(
        "{severity}[{}]\n\n  {sign} {}\n {:width$} ,-[{file}:{line}:{column}]\n",
        text(diagnostic, "code"),
        text(diagnostic, "message"),
        "",
    );
    let source = sources.and_then(|sources| sources.get(raw_text(diagnostic, "file"))?.as_str());
    let index = usize::try_from(line.saturating_sub(1)).unwrap_or(usize::MAX);
    if let Some(source) = source.and_then(|source| source.lines().nth(index)) {
        let place = Underline::new(source, column, number("length"));
        writeln!(page, " {line} | {}", source.replace('\t', " ")).unwrap_or_default();
        place.write(&mut page, width, &label);
    } else if !label.is_empty() {
        writeln!(page, " {:width$} : {label}", "").unwrap_or_default();
    }
    writeln!(page, " {:width$} `----", "").unwrap_or_default();
    let help = text(diagnostic, "help");
    if !help.is_empty() {
        writeln!(page, "  help: {help}").unwrap_or_default();
    }
    page
}

/// Part of a line to underline, in characters.
struct Underline {
    before: usize,
    length: usize,
}

impl Underline {
    /// `column` starts at 1. An underline of `bytes` stops at the end of the line.
    fn new(line: &str, column: u64, bytes: u64) -> Self {
        let before = usize::try_from(column.saturating_sub(1)).unwrap_or_default();
        let rest: String = line.chars().skip(before).collect();
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let marked = rest.char_indices().take_while(|(at, _)| *at < bytes);
        Self {
            before,
            length: marked.count().max(1),
        }
    }

    fn write(&self, page: &mut String, width: usize, label: &str) {
        let Self { before, length } = *self;
        let margin = format!(" {:width$} : {:before$}", "", "");
        if label.is_empty() {
            writeln!(page, "{margin}{}", "^".repeat(length)).unwrap_or_default();
            return;
        }
        let middle = (length - 1) / 2;
        let (left, right) = ("^".repeat(middle), "^".repeat(length - middle - 1));
        writeln!(page, "{margin}{left}|{right}").unwrap_or_default();
        writeln!(page, "{margin}{:middle$}`-- {label}", "").unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_message_imitates_no_further_diagnostic() {
        let hostile = "x\nerror: folder: has errors";
        let bundle = json!({"diagnostics": [{"severity": "warning", "code": "a", "message": hostile,
            "file": hostile, "line": 1, "column": 1, "length": 1, "label": hostile, "help": hostile}]});
        let shown = render(&bundle, None);
        assert!(!shown.contains("\nerror:"), "{shown}");
        assert_eq!(shown.lines().count(), 7, "{shown}");
    }

    #[test]
    fn a_diagnostic_has_its_source_line_and_its_cure() {
        let bundle = json!({"diagnostics": [
            {"severity": "error", "code": "unknown-setting", "message": "unknown setting `upstrem`",
             "file": "proxy.kdl", "line": 2, "column": 5, "length": 7,
             "label": "did you mean `upstream`?", "help": "see the reference"},
            {"severity": "warning", "code": "unused-upstream", "message": "no route names it",
             "file": "other.kdl", "line": 12, "column": 1, "length": 3, "label": "", "help": null},
        ]});
        let sources = json!({"proxy.kdl": "routes {\n    upstrem \"a\"\n}"});
        assert_eq!(
            render(&bundle, Some(&sources)),
            "error[unknown-setting]\n\n  x unknown setting `upstrem`\n   ,-[proxy.kdl:2:5]\n \
             2 |     upstrem \"a\"\n   :     ^^^|^^^\n   :        `-- did you mean `upstream`?\n   \
             `----\n  help: see the reference\n\n\
             warning[unused-upstream]\n\n  ! no route names it\n    ,-[other.kdl:12:1]\n    `----\n"
        );
    }
}
