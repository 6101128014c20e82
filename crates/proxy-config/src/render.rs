//! Rendering of diagnostics for the terminal: sentence, place, source line and underline.

use crate::diagnostic::Diagnostic;
use proxy_model::{Place, Sources};
use std::fmt::{self, Write};

/// Maximum width of a source line, in columns.
const MAX_COLUMNS: usize = 120;
/// Columns shown before the underlined text of a cut line.
const LEAD: usize = 40;
const TAB: usize = 4;

/// Writes one diagnostic.
pub(crate) fn write(out: &mut impl Write, sources: &Sources, fault: &Diagnostic) -> fmt::Result {
    let places =
        || std::iter::once(fault.place).chain(fault.related.iter().map(|related| related.0));
    let line = places().map(|place| place.line).max().unwrap_or(0);
    let margin = line.to_string().len();
    let severity = fault.severity().name();
    writeln!(out, "{severity}[{}]: {}", fault.code, plain(&fault.message))?;
    snippet(
        out,
        sources,
        &Mark {
            place: fault.place,
            label: &fault.label,
            with: '^',
            margin,
        },
    )?;
    for (place, label) in &fault.related {
        snippet(
            out,
            sources,
            &Mark {
                place: *place,
                label,
                with: '-',
                margin,
            },
        )?;
    }
    if let Some(help) = &fault.help {
        let indent = " ".repeat(margin + 9);
        let help = plain(help).replace('\n', &format!("\n{indent}"));
        writeln!(out, "{:margin$} = help: {help}", "")?;
    }
    Ok(())
}

/// An underlined place.
struct Mark<'a> {
    place: Place,
    label: &'a str,
    with: char,
    /// Width of the line numbers, in columns.
    margin: usize,
}

fn snippet(out: &mut impl Write, sources: &Sources, mark: &Mark<'_>) -> fmt::Result {
    let Mark {
        place,
        label,
        with,
        margin,
    } = *mark;
    let name = plain(sources.name(place.file));
    let arrow = if with == '^' { "-->" } else { ":::" };
    // The place is the whole file, or something that the file lacks.
    if place.line == 0 {
        writeln!(out, "{:margin$}{arrow} {name}", "")?;
        if !label.is_empty() {
            writeln!(out, "{:margin$} = {}", "", plain(label))?;
        }
        return Ok(());
    }
    writeln!(
        out,
        "{:margin$}{arrow} {name}:{}:{}",
        "", place.line, place.column
    )?;
    let Some(line) = Line::at(sources, place) else {
        return Ok(());
    };
    let under = with.to_string().repeat(line.under);
    let shown = line.shown.trim_end();
    writeln!(out, "{:margin$} |", "")?;
    writeln!(out, "{:>margin$} | {shown}", place.line)?;
    let marked = format!(
        "{:margin$} | {:before$}{under} {}",
        "",
        "",
        plain(label),
        before = line.before
    );
    writeln!(out, "{}", marked.trim_end())
}

/// A source line as displayed: tabs expanded, controls replaced, long lines cut.
struct Line {
    shown: String,
    /// Columns before the underlined text.
    before: usize,
    /// Columns of the underlined text.
    under: usize,
}

impl Line {
    fn at(sources: &Sources, place: Place) -> Option<Self> {
        let text = &*sources.file(place.file)?.text;
        let at = usize::try_from(place.offset).ok()?;
        let length = usize::try_from(place.len).ok()?;
        let start = text.get(..at)?.rfind('\n').map_or(0, |newline| newline + 1);
        let rest = text.get(at..)?;
        let end = at + rest.find('\n').unwrap_or(rest.len());
        let marked = (at + length).min(end);
        let before = text.get(start..at)?;
        let cut = start_of_last(before, LEAD);
        let is_long = width(before) + width(text.get(at..end)?) > MAX_COLUMNS;
        let lead = if is_long { before.get(cut..)? } else { before };
        let ellipsis = if lead.len() < before.len() { "…" } else { "" };
        let lead = format!("{ellipsis}{}", widened(lead));
        let room = MAX_COLUMNS.saturating_sub(width(&lead));
        let marked_text = clipped(&widened(text.get(at..marked)?), room);
        let room = room.saturating_sub(width(&marked_text));
        let tail = clipped(&widened(text.get(marked..end)?), room);
        Some(Self {
            before: width(&lead),
            under: width(&marked_text).max(1),
            shown: format!("{lead}{marked_text}{tail}"),
        })
    }
}

/// The byte offset of the last `count` characters.
fn start_of_last(text: &str, count: usize) -> usize {
    let mut starts = text.char_indices().rev();
    starts.nth(count.saturating_sub(1)).map_or(0, |(at, _)| at)
}

fn clipped(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut clipped = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += char_width(c);
        if used > columns {
            break;
        }
        clipped.push(c);
    }
    clipped + "…"
}

/// Text with tabs expanded and controls replaced by a mark, so that its width is known and a file
/// cannot send escape sequences to the terminal.
fn widened(text: &str) -> String {
    let mut wide = String::with_capacity(text.len());
    for c in text.trim_end_matches('\r').chars() {
        match c {
            '\t' => wide.push_str(&" ".repeat(TAB)),
            c if is_unsafe(c) => wide.push('\u{fffd}'),
            c => wide.push(c),
        }
    }
    wide
}

/// Text from a file, with escape sequences made visible.
fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for c in text.chars() {
        if c != '\n' && is_unsafe(c) {
            plain.extend(c.escape_default());
        } else {
            plain.push(c);
        }
    }
    plain
}

fn is_unsafe(c: char) -> bool {
    c.is_control() || crate::kdl::is_forbidden(c)
}

fn width(text: &str) -> usize {
    text.chars().map(char_width).sum()
}

/// Width of a character on a terminal, in columns: 2 for East Asian and emoji, 0 for combining
/// marks.
const fn char_width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200d}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{33ff}'
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'
        | '\u{a000}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}'
        | '\u{1f900}'..='\u{1f9ff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}
