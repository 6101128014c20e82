//! Parses YAML documents. Aliases are copies of their anchors; `<<` merges maps.

use super::value::{Content, Entry, Value};
use crate::migrated::{Place, SyntaxError};
use crate::source::Source;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

/// Maximum depth of nesting.
const MAX_DEPTH: usize = 64;
/// Maximum number of values; an anchor's values count for each alias.
const MAX_VALUES: usize = 200_000;

/// A list or map during parsing.
struct Frame {
    line: u32,
    anchor: usize,
    content: Content,
    /// Key of a map's next value.
    key: Option<(String, u32)>,
}

struct Reader<'t> {
    source: &'t Source,
    file: Rc<str>,
    /// Number of lines in the file.
    lines: u32,
    frames: Vec<Frame>,
    anchors: HashMap<usize, (Value, usize)>,
    count: usize,
    root: Option<Value>,
}

/// Parses the first document of a file.
pub(super) fn parse(source: &Source) -> Result<Value, SyntaxError> {
    let mut reader = Reader {
        source,
        file: Rc::from(source.name.as_str()),
        lines: u32::try_from(source.text.matches('\n').count() + 1).unwrap_or(u32::MAX),
        frames: Vec::new(),
        anchors: HashMap::new(),
        count: 0,
        root: None,
    };
    let mut parser = Parser::new_from_str(&source.text);
    while let Some(event) = parser.next_event() {
        let (event, span) = event.map_err(|error| reader.scan_error(&error))?;
        let line = reader.line(span.start);
        match event {
            Event::Scalar(text, style, anchor, _) => {
                let is_plain = style == ScalarStyle::Plain;
                let is_nothing = is_plain && matches!(&*text, "~" | "null" | "Null" | "NULL");
                let text = if is_nothing {
                    String::new()
                } else {
                    text.into_owned()
                };
                let value = reader.value(line, Content::Text(text));
                reader.add(value, anchor, 1)?;
            }
            Event::SequenceStart(anchor, _) => {
                reader.open(line, anchor, Content::List(Vec::new()))?;
            }
            Event::MappingStart(anchor, _) => {
                reader.open(line, anchor, Content::Map(Vec::new()))?;
            }
            Event::SequenceEnd | Event::MappingEnd => reader.close()?,
            Event::Alias(anchor) => {
                let Some((value, size)) = reader.anchors.get(&anchor).cloned() else {
                    return Err(reader.error(line, "an alias needs an anchor before it"));
                };
                reader.add(value, 0, size)?;
            }
            Event::DocumentEnd => break,
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) => {}
        }
    }
    let empty = reader.value(1, Content::Text(String::new()));
    Ok(reader.root.unwrap_or(empty))
}

impl Reader<'_> {
    fn value(&self, line: u32, content: Content) -> Value {
        Value {
            file: Rc::clone(&self.file),
            line,
            content,
        }
    }

    /// Line of a marker, limited to the file's lines: the parser may count one more, and counts
    /// carriage returns as lines.
    fn line(&self, marker: Marker) -> u32 {
        let line = u32::try_from(marker.line()).unwrap_or(u32::MAX);
        line.clamp(1, self.lines)
    }

    fn error(&self, line: u32, message: &str) -> SyntaxError {
        SyntaxError {
            place: Place {
                file: self.source.name.clone(),
                line,
            },
            message: message.to_owned(),
        }
    }

    fn scan_error(&self, error: &ScanError) -> SyntaxError {
        let line = self.line(*error.marker());
        self.error(line, error.info())
    }

    fn open(&mut self, line: u32, anchor: usize, content: Content) -> Result<(), SyntaxError> {
        if self.frames.len() >= MAX_DEPTH {
            return Err(self.error(line, "values are nested more than 64 deep"));
        }
        self.frames.push(Frame {
            line,
            anchor,
            content,
            key: None,
        });
        Ok(())
    }

    fn close(&mut self) -> Result<(), SyntaxError> {
        let Some(frame) = self.frames.pop() else {
            return Ok(());
        };
        let content = match frame.content {
            Content::Map(entries) => Content::Map(self.merged(entries)?),
            content @ (Content::Text(_) | Content::List(_)) => content,
        };
        let value = self.value(frame.line, content);
        self.add(value, frame.anchor, 1)
    }

    /// Adds a value with `size` parts to the enclosing list or map.
    fn add(&mut self, value: Value, anchor: usize, size: usize) -> Result<(), SyntaxError> {
        let line = value.line;
        self.count = self.count.saturating_add(size);
        if self.count > MAX_VALUES {
            return Err(self.error(line, "there are more than 200 000 values"));
        }
        if anchor != 0 {
            let size = size_of(&value);
            self.count = self.count.saturating_add(size);
            self.anchors.insert(anchor, (value.clone(), size));
        }
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(value);
            return Ok(());
        };
        match &mut frame.content {
            Content::List(items) => items.push(value),
            Content::Map(entries) => match (frame.key.take(), value.content) {
                (Some((key, key_line)), content) => entries.push(Entry {
                    key,
                    value: Value { content, ..value },
                    line: key_line,
                }),
                (None, Content::Text(key)) => frame.key = Some((key, line)),
                (None, _) => return Err(self.error(line, "a key is a text")),
            },
            Content::Text(_) => {}
        }
        Ok(())
    }

    /// Entries of a map, plus those of `<<` that it does not override.
    fn merged(&self, entries: Vec<Entry>) -> Result<Vec<Entry>, SyntaxError> {
        let (merges, mut own): (Vec<Entry>, Vec<Entry>) =
            entries.into_iter().partition(|entry| entry.key == "<<");
        let mut keys: HashSet<String> = HashSet::new();
        for entry in &own {
            if !keys.insert(entry.key.clone()) {
                let message = format!("`{}` is there twice", entry.key);
                return Err(self.error(entry.line, &message));
            }
        }
        for merge in merges {
            let maps = match merge.value.content {
                Content::List(items) => items,
                content @ (Content::Text(_) | Content::Map(_)) => vec![Value {
                    content,
                    ..merge.value
                }],
            };
            for map in maps {
                let Content::Map(entries) = map.content else {
                    return Err(self.error(map.line, "`<<` merges maps"));
                };
                own.extend(entries.into_iter().filter(|it| keys.insert(it.key.clone())));
            }
        }
        Ok(own)
    }
}

/// Number of values within a value, including itself.
fn size_of(value: &Value) -> usize {
    1 + match &value.content {
        Content::Text(_) => 0,
        Content::List(items) => items.iter().map(size_of).sum(),
        Content::Map(entries) => entries.iter().map(|entry| size_of(&entry.value)).sum(),
    }
}
