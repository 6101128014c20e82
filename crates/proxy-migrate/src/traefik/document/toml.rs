//! Parses TOML documents.

use super::value::{Content, Entry, Value};
use crate::migrated::{Place, SyntaxError};
use crate::source::Source;
use std::ops::Range;
use std::rc::Rc;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

struct Reader {
    file: Rc<str>,
    /// Byte offset of each line.
    lines: Vec<usize>,
}

pub(super) fn parse(source: &Source) -> Result<Value, SyntaxError> {
    let text = &source.text;
    let line_ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
    let mut lines = vec![0];
    lines.extend(line_ends.map(|(at, _)| at + 1));
    let reader = Reader {
        file: Rc::from(source.name.as_str()),
        lines,
    };
    let table = DeTable::parse(text).map_err(|error| SyntaxError {
        place: Place {
            file: source.name.clone(),
            line: reader.line(&error.span().unwrap_or_default()),
        },
        message: error.message().replace('\n', ", "),
    })?;
    let content = reader.table(table.get_ref());
    Ok(reader.value(1, content))
}

impl Reader {
    /// Line of a span's start, from 1.
    fn line(&self, span: &Range<usize>) -> u32 {
        let before = self.lines.partition_point(|start| *start <= span.start);
        u32::try_from(before).unwrap_or(u32::MAX).max(1)
    }

    fn value(&self, line: u32, content: Content) -> Value {
        Value {
            file: Rc::clone(&self.file),
            line,
            content,
        }
    }

    /// Entries of a table in file order. The TOML parser limits the depth.
    fn table(&self, table: &DeTable<'_>) -> Content {
        let mut entries: Vec<(usize, Entry)> = Vec::new();
        for (key, value) in table {
            let line = self.line(&key.span());
            let entry = Entry {
                key: key.get_ref().to_string(),
                value: self.converted(value, line),
                line,
            };
            entries.push((key.span().start, entry));
        }
        entries.sort_by_key(|(start, _)| *start);
        Content::Map(entries.into_iter().map(|(_, entry)| entry).collect())
    }

    /// The value with its line. For all but strings that is the key's line, because the span of a
    /// table written in several parts covers only one of them.
    fn converted(&self, value: &Spanned<DeValue<'_>>, key_line: u32) -> Value {
        let (line, content) = match value.get_ref() {
            DeValue::String(text) => (self.line(&value.span()), Content::Text(text.to_string())),
            DeValue::Integer(number) => (key_line, Content::Text(number.as_str().to_owned())),
            DeValue::Float(number) => (key_line, Content::Text(number.as_str().to_owned())),
            DeValue::Boolean(flag) => (key_line, Content::Text(flag.to_string())),
            DeValue::Datetime(time) => (key_line, Content::Text(time.to_string())),
            DeValue::Array(items) => {
                let items = items.iter();
                let items = items.map(|item| self.converted(item, self.line(&item.span())));
                (key_line, Content::List(items.collect()))
            }
            DeValue::Table(table) => (key_line, self.table(table)),
        };
        self.value(line, content)
    }
}
