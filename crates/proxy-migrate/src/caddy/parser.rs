//! Parser for Caddyfiles: lines of words, and blocks.

mod arguments;

use crate::cursor::Cursor;
use crate::migrated::{Place, SyntaxError};
use crate::source::Source;
use std::collections::HashMap;

/// A line with its block.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) words: Vec<String>,
    pub(super) block: Vec<Directive>,
    pub(super) has_block: bool,
    pub(super) place: Place,
}

/// Maximum depth of blocks; a snippet counts as eight levels.
const MAX_DEPTH: usize = 32;
/// Maximum number of lines; a snippet's lines count each time it is imported.
const MAX_LINES: usize = 200_000;
/// Maximum number of bytes in the words of expanded snippets: arguments may repeat in each of them.
const MAX_BYTES: usize = 64 << 20;

impl Directive {
    pub(super) fn name(&self) -> &str {
        self.word(0)
    }

    /// A word by its position; empty if there is none.
    pub(super) fn word(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }

    pub(super) fn arguments(&self) -> &[String] {
        self.words.get(1..).unwrap_or_default()
    }

    pub(super) fn shown(&self) -> String {
        self.words.join(" ")
    }
}

/// Parses the sites of a file, with each `import` replaced by the snippet's lines.
pub(super) fn parse(source: &Source) -> Result<Vec<Directive>, SyntaxError> {
    let mut lexer = Lexer {
        cursor: Cursor::new(source),
    };
    let lines = lexer.block(0)?;
    // Files that are imported before the first site are no address.
    let first = lines.iter().find(|line| line.name() != "import");
    let has_sites = first.is_none_or(|line| line.has_block);
    let sites = if has_sites { lines } else { one_site(lines) };
    let (named, mut sites): (Vec<_>, Vec<_>) = sites.into_iter().partition(is_snippet);
    let mut snippets: HashMap<String, Directive> = HashMap::new();
    for snippet in named {
        snippets.entry(snippet.name().to_owned()).or_insert(snippet);
    }
    let mut imports = Imports {
        snippets: &snippets,
        lines: 0,
        bytes: 0,
    };
    for site in &mut sites {
        site.block = imports.expand(std::mem::take(&mut site.block), 0)?;
    }
    Ok(sites)
}

/// Adds the braces that a file with a single site may omit.
fn one_site(mut lines: Vec<Directive>) -> Vec<Directive> {
    if lines.is_empty() {
        return lines;
    }
    let mut site = lines.remove(0);
    site.block = lines;
    site.has_block = true;
    vec![site]
}

fn is_snippet(line: &Directive) -> bool {
    line.has_block && line.name().starts_with('(')
}

/// Expansion of `import` directives by snippets.
struct Imports<'s> {
    snippets: &'s HashMap<String, Directive>,
    lines: usize,
    /// Bytes of words in expanded snippets.
    bytes: usize,
}

impl Imports<'_> {
    fn expand(
        &mut self,
        block: Vec<Directive>,
        depth: usize,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let mut expanded = Vec::new();
        for mut line in block {
            self.lines += 1;
            if MAX_LINES < self.lines {
                return Err(SyntaxError {
                    place: line.place,
                    message: "snippets make more than 200 000 lines".to_owned(),
                });
            }
            line.block = self.expand(line.block, depth)?;
            let wanted = format!("({})", line.word(1));
            let snippet = self.snippets.get(&wanted);
            match snippet {
                Some(snippet) if line.name() == "import" && depth < MAX_DEPTH => {
                    let values = line.words.get(2..).unwrap_or_default();
                    let lines = self.with_arguments(&snippet.block, values, &line.place)?;
                    let inner = self.expand(lines, depth + MAX_DEPTH / 4)?;
                    expanded.extend(inner);
                }
                _ => expanded.push(line),
            }
        }
        Ok(expanded)
    }
}

impl Imports<'_> {
    /// Lines of a snippet with its arguments in place of their placeholders.
    fn with_arguments(
        &mut self,
        lines: &[Directive],
        values: &[String],
        place: &Place,
    ) -> Result<Vec<Directive>, SyntaxError> {
        let mut replaced = Vec::with_capacity(lines.len());
        for line in lines {
            let words: Vec<String> = line
                .words
                .iter()
                .flat_map(|word| arguments::replaced(word, values))
                .collect();
            self.bytes += words.iter().map(String::len).sum::<usize>();
            if self.bytes > MAX_BYTES {
                return Err(SyntaxError {
                    place: place.clone(),
                    message: "arguments of snippets make more than 64 MiB".to_owned(),
                });
            }
            replaced.push(Directive {
                words,
                block: self.with_arguments(&line.block, values, place)?,
                has_block: line.has_block,
                place: line.place.clone(),
            });
        }
        Ok(replaced)
    }
}

struct Lexer<'t> {
    cursor: Cursor<'t>,
}

impl Lexer<'_> {
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.cursor.error("blocks are nested more than 32 deep"));
        }
        let mut lines = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut place = self.cursor.place();
        loop {
            self.skip_spaces();
            if words.is_empty() {
                place = self.cursor.place();
            }
            let end = |words: &mut Vec<String>,
                       lines: &mut Vec<Directive>,
                       block: Option<Vec<Directive>>| {
                if words.is_empty() && block.is_none() {
                    return;
                }
                lines.push(Directive {
                    words: std::mem::take(words),
                    has_block: block.is_some(),
                    block: block.unwrap_or_default(),
                    place: place.clone(),
                });
            };
            match self.cursor.peek() {
                None => {
                    end(&mut words, &mut lines, None);
                    return if depth == 0 {
                        Ok(lines)
                    } else {
                        Err(self.cursor.error("the file ends within a block"))
                    };
                }
                Some('\n') => {
                    self.cursor.bump();
                    // A comma continues the addresses on the next line.
                    let goes_on =
                        depth == 0 && words.last().is_some_and(|word| word.ends_with(','));
                    if !goes_on {
                        end(&mut words, &mut lines, None);
                    }
                }
                Some('#') => {
                    while self.cursor.peek().is_some_and(|c| c != '\n') {
                        self.cursor.bump();
                    }
                }
                Some(_) => match self.word()?.as_str() {
                    "{" => {
                        let block = self.block(depth + 1)?;
                        end(&mut words, &mut lines, Some(block));
                    }
                    "}" if words.is_empty() && depth > 0 => return Ok(lines),
                    "}" => return Err(self.cursor.error("`}` closes nothing here")),
                    word => words.push(word.to_owned()),
                },
            }
        }
    }

    /// Skips spaces between words, but not line ends.
    fn skip_spaces(&mut self) {
        let is_space = |c: char| c.is_whitespace() && c != '\n';
        while self.cursor.peek().is_some_and(is_space) {
            self.cursor.bump();
        }
    }

    fn word(&mut self) -> Result<String, SyntaxError> {
        let mut word = String::new();
        if let Some(quote) = self.cursor.bump_if(&['"', '`']) {
            loop {
                match self.cursor.bump() {
                    Some('\\') if quote == '"' => match self.cursor.bump() {
                        Some('"') => word.push('"'),
                        Some(c) => word.extend(['\\', c]),
                        None => return Err(self.cursor.error("a quoted text has no end")),
                    },
                    Some(c) if c == quote => return Ok(word),
                    Some(c) => word.push(c),
                    None => return Err(self.cursor.error("a quoted text has no end")),
                }
            }
        }
        while let Some(c) = self.cursor.peek().filter(|c| !c.is_whitespace()) {
            self.cursor.bump();
            word.push(c);
        }
        Ok(word)
    }
}
