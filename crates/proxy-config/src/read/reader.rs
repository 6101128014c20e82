//! Reading of a file and of its includes, within limits.

use super::environment;
use super::faults::{forbidden_fault, foreign_format_fault, outside, syntax_error};
use super::foreign_format::ForeignFormat;
use super::lines::Lines;
use super::texts::Texts;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::files::Files;
use crate::kdl::{self, Node, Span, Value};
use proxy_model::{FileId, Place};
use std::io;
use std::path::PathBuf;

/// Maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 16 << 20;
/// Maximum total size of all files, in bytes.
const MAX_TOTAL_BYTES: u64 = 64 << 20;
/// Bytes of a file that are kept after the first byte that is not UTF-8, to be shown.
const SHOWN_BINARY_BYTES: usize = 256;
const MAX_INCLUDE_DEPTH: usize = 8;

/// Maximum number of patterns and files of all `include`s: a file is read once for each including
/// file, so a few files could expand to billions.
const MAX_INCLUDES: usize = 20_000;

/// Quotation marks of prose and of other languages.
const ODD_QUOTES: &str = "'`\u{2018}\u{2019}\u{201a}\u{201c}\u{201d}\u{201e}\u{ab}\u{bb}";

/// Reads files one after the other, each include where it is written.
pub(super) struct Reader<'f> {
    files: Files<'f>,
    texts: Texts,
    /// The chain of files being read, each included by the one before.
    within: Vec<PathBuf>,
    bytes: u64,
    /// Nodes, arguments and properties that may follow.
    items_left: usize,
    /// Number of patterns and files of all `include`s.
    includes: usize,
}

/// A fault of a whole file, reported at its `include`.
struct Unread(DiagnosticCode, String);

impl Unread {
    fn at(self, place: Place) -> Diagnostic {
        Diagnostic::new(self.0, place, self.1)
    }
}

impl<'f> Reader<'f> {
    /// A reader that appends to `texts`.
    pub(super) fn new(files: Files<'f>, texts: Texts) -> Self {
        Self {
            files,
            texts,
            within: Vec::new(),
            bytes: 0,
            items_left: kdl::MAX_ITEMS,
            includes: 0,
        }
    }

    /// Reads `name` and its includes.
    pub(super) fn read(mut self, name: &str) -> Texts {
        if let Err(fault) = self.file(name) {
            let file = self.add(name, "");
            let place = Place {
                file,
                ..Place::default()
            };
            self.texts.faults.push(fault.at(place));
        }
        self.texts
    }

    /// Reads one file. Faults within it are diagnostics of the file.
    ///
    /// # Errors
    /// The file as a whole cannot be read.
    fn file(&mut self, name: &str) -> Result<(), Unread> {
        let bytes = self.bytes_of(name)?;
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(fault) => {
                let at = fault.utf8_error().valid_up_to();
                let shown = fault.as_bytes().get(..at + SHOWN_BINARY_BYTES);
                let shown = shown.unwrap_or(fault.as_bytes());
                let text = String::from_utf8_lossy(shown).into_owned();
                let file = self.add(name, &text);
                let span = Span::new(at, at + char::REPLACEMENT_CHARACTER.len_utf8());
                self.fault(DiagnosticCode::NotUtf8, file, span, "this is not UTF-8");
                return Ok(());
            }
        };
        let file = self.add(name, &text);
        if let Some(span) = kdl::forbidden(&text) {
            let fault = forbidden_fault(&text, span, self.texts.place(file, span));
            self.texts.faults.push(fault);
            return Ok(());
        }
        if let Some((format, line)) = ForeignFormat::detect(&text) {
            self.report_foreign_format(file, &text, format, line);
            return Ok(());
        }
        match kdl::read(&text, &mut self.items_left) {
            Ok(mut nodes) => {
                self.report_odd_quotes(file, &text, &nodes);
                if text.contains("{$") {
                    self.expand(file, &text, &mut nodes);
                }
                self.within.push(self.files.identity(name));
                self.append(file, name, nodes);
                self.within.pop();
            }
            Err(faults) => {
                for fault in faults {
                    let place = self.texts.place(file, fault.span);
                    self.texts.faults.push(syntax_error(fault, place));
                }
            }
        }
        Ok(())
    }

    /// The bytes of a file, within the limits on one and on all files.
    fn bytes_of(&mut self, name: &str) -> Result<Vec<u8>, Unread> {
        let read = if self.within.is_empty() {
            self.files.read_named_by_caller(name, MAX_FILE_BYTES)
        } else {
            self.files.read(name, MAX_FILE_BYTES)
        };
        let bytes = read.map_err(|fault| {
            if fault.kind() == io::ErrorKind::FileTooLarge {
                let message = format!("`{name}` is larger than {} MiB", MAX_FILE_BYTES >> 20);
                return Unread(DiagnosticCode::FileTooLarge, message);
            }
            Unread(
                DiagnosticCode::UnreadableFile,
                format!("`{name}` cannot be read: {fault}"),
            )
        })?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_add(size);
        if self.bytes > MAX_TOTAL_BYTES {
            let message = format!(
                "all files together are larger than {} MiB",
                MAX_TOTAL_BYTES >> 20
            );
            return Err(Unread(DiagnosticCode::FileTooLarge, message));
        }
        Ok(bytes)
    }

    /// Appends the nodes of a file, replacing each `include` by the nodes of the included file.
    fn append(&mut self, file: FileId, name: &str, nodes: Vec<Node>) {
        for node in nodes {
            if &*node.name.text == "include" && node.children.is_none() {
                self.include(file, name, &node);
            } else {
                self.texts.nodes.push((file, node));
            }
        }
    }

    /// Reads the files that an `include` names.
    fn include(&mut self, file: FileId, name: &str, node: &Node) {
        if node.entries.is_empty() {
            let message = "`include` needs a file name or a pattern";
            self.fault(DiagnosticCode::MissingValue, file, node.head, message);
        }
        for entry in &node.entries {
            let Value::Text(pattern) = &entry.value else {
                let message = "`include` takes file names or patterns";
                self.fault(DiagnosticCode::WrongType, file, entry.span, message);
                continue;
            };
            self.include_matching(name, pattern, self.texts.place(file, entry.span));
        }
    }

    /// Reads the files that match `pattern`, relative to the folder of the file `name`.
    fn include_matching(&mut self, name: &str, pattern: &str, place: Place) {
        if !self.count_include(place) {
            return;
        }
        let pattern = relative_to(name, pattern);
        if let Some(bundle) = &self.texts.bundle
            && bundle.relative(&pattern).is_none()
        {
            let fault = outside(&pattern, place);
            self.texts.faults.push(fault);
            return;
        }
        let names = self.files.matching(&pattern);
        if names.is_empty() {
            let message = format!("no file matches `{pattern}`");
            let fault = Diagnostic::new(DiagnosticCode::IncludeWithoutMatch, place, message);
            self.texts
                .faults
                .push(fault.help("it is relative to the folder of this file"));
        }
        for included in names {
            if !self.count_include(place) {
                return;
            }
            if let Err(fault) = self.included_file(&included) {
                self.texts.faults.push(fault.at(place));
            }
        }
    }

    /// Returns true if one more pattern or file may be included; reports an excess once.
    fn count_include(&mut self, place: Place) -> bool {
        self.includes += 1;
        if self.includes == MAX_INCLUDES + 1 {
            let message = format!("more than {MAX_INCLUDES} patterns and files are included");
            let fault = Diagnostic::new(DiagnosticCode::TooManyIncludes, place, message);
            let help = "a file counts each time it is included; include it once";
            self.texts.faults.push(fault.help(help));
        }
        self.includes <= MAX_INCLUDES
    }

    /// Reads one included file, unless it is being read or is nested too deep.
    fn included_file(&mut self, name: &str) -> Result<(), Unread> {
        let identity = self.files.identity(name);
        if self.within.contains(&identity) {
            let message = format!("`{name}` includes itself");
            return Err(Unread(DiagnosticCode::IncludeCycle, message));
        }
        if self.within.len() > MAX_INCLUDE_DEPTH {
            let message = format!("files include files more than {MAX_INCLUDE_DEPTH} times over");
            return Err(Unread(DiagnosticCode::IncludeTooDeep, message));
        }
        self.file(name)
    }

    /// Reports a file in the notation of another program, at the first line that shows it.
    fn report_foreign_format(
        &mut self,
        file: FileId,
        text: &str,
        format: ForeignFormat,
        line: &str,
    ) {
        let start = text.find(line).unwrap_or_default();
        let place = self.texts.place(file, Span::new(start, start + line.len()));
        self.texts.faults.push(foreign_format_fault(format, place));
    }

    /// Reports names and values that begin with a typographic quotation mark, which KDL does not
    /// recognize.
    fn report_odd_quotes(&mut self, file: FileId, text: &str, nodes: &[Node]) {
        for node in nodes {
            let names = node.entries.iter().filter_map(|entry| entry.name.as_ref());
            let spans = names.map(|name| name.span);
            let spans = spans.chain(node.entries.iter().map(|entry| entry.span));
            for span in std::iter::once(node.name.span).chain(spans) {
                let written = text.get(span.start()..span.end()).unwrap_or_default();
                let first = written.chars().next().filter(|c| ODD_QUOTES.contains(*c));
                if let Some(quote) = first {
                    let place = self.texts.place(file, span);
                    let message = format!("`{quote}` is not a quotation mark of KDL");
                    let fault = Diagnostic::new(DiagnosticCode::Syntax, place, message);
                    let bare = written.trim_matches(|c| ODD_QUOTES.contains(c));
                    let fault = fault.help(format!("write `\"{bare}\"`"));
                    self.texts.faults.push(fault);
                }
            }
            self.report_odd_quotes(file, text, node.children.as_deref().unwrap_or_default());
        }
    }

    /// Puts the values of environment variables into the texts that name them, except into raw
    /// ones.
    #[cold]
    fn expand(&mut self, file: FileId, text: &str, nodes: &mut [Node]) {
        for node in nodes {
            for entry in &mut node.entries {
                let written = text.get(entry.span.start()..entry.span.end());
                let is_raw = written.is_some_and(|written| written.starts_with('#'));
                let Value::Text(value) = &mut entry.value else {
                    continue;
                };
                if is_raw {
                    continue;
                }
                if let Some(wrong) = environment::misspelt_variable(value) {
                    self.warn_literal(file, entry.span, wrong);
                }
                if environment::has_variable(value) {
                    self.expand_value(file, entry.span, value);
                }
            }
            self.expand(file, text, node.children.as_deref_mut().unwrap_or_default());
        }
    }

    /// Warns of text in the form of a variable with a name that no variable has.
    fn warn_literal(&mut self, file: FileId, span: Span, wrong: &str) {
        let place = self.texts.place(file, span);
        let message = format!("`{wrong}` is not a variable, and is taken literally");
        let warning = Diagnostic::new(DiagnosticCode::ForeignNotation, place, message);
        let help = "names of variables have letters, digits and `_`; a raw text, `#\"…\"#`, is taken as it is";
        self.texts.warnings.push(warning.help(help));
    }

    fn expand_value(&mut self, file: FileId, span: Span, value: &mut Box<str>) {
        let place = self.texts.place(file, span);
        if self.texts.bundle.is_some() {
            let message = "a bundle holds no variables of the environment";
            let fault = Diagnostic::new(DiagnosticCode::BundleReach, place, message);
            let help = "write the value itself; `#\"{$NAME}\"#` is text as it is";
            self.texts.faults.push(fault.help(help));
            return;
        }
        match environment::expand(value, |name| self.files.variable(name)) {
            Ok(expanded) => *value = expanded.into(),
            Err(missing) => {
                for name in missing {
                    let message = format!("the environment variable `{name}` is not set");
                    let fault = Diagnostic::new(DiagnosticCode::MissingVariable, place, message);
                    let help = format!("set it, or write a default: `{{${name}:value}}`");
                    self.texts.faults.push(fault.help(help));
                }
            }
        }
    }

    fn add(&mut self, name: &str, text: &str) -> FileId {
        self.texts.lines.push(Lines::new(text));
        self.texts.sources.add(name, text)
    }

    fn fault(
        &mut self,
        code: DiagnosticCode,
        file: FileId,
        span: Span,
        message: impl Into<String>,
    ) {
        let place = self.texts.place(file, span);
        self.texts
            .faults
            .push(Diagnostic::new(code, place, message));
    }
}

/// `path` resolved against the folder of the file `name`.
pub(crate) fn relative_to(name: &str, path: &str) -> String {
    match name.rsplit_once('/') {
        Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
        Some(_) | None => path.to_owned(),
    }
}
