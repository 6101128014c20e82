//! Parser for nginx configurations: directives with words and blocks.

use crate::cursor::Cursor;
use crate::migrated::{Place, SyntaxError};
use crate::source::{Included, Source};

/// A directive with its words and block.
#[derive(Clone, Debug)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) words: Vec<String>,
    pub(super) block: Option<Vec<Directive>>,
    pub(super) place: Place,
}

/// Maximum depth of blocks and includes.
const MAX_DEPTH: usize = 32;
/// Maximum number of directives in all files; a file counts each time it is included.
const MAX_DIRECTIVES: usize = 200_000;

impl Directive {
    pub(super) fn word(&self, index: usize) -> Option<&str> {
        self.words.get(index).map(String::as_str)
    }

    pub(super) fn children(&self) -> &[Self] {
        self.block.as_deref().unwrap_or_default()
    }

    /// The directive without its block, as text.
    pub(super) fn shown(&self) -> String {
        let words = std::iter::once(&self.name).chain(&self.words);
        words.map(String::as_str).collect::<Vec<_>>().join(" ")
    }
}

/// Parses the directives of a file, with each `include` replaced by the included files. An
/// `include` without files is kept.
pub(super) fn parse(
    source: &Source,
    included: Included<'_>,
) -> Result<Vec<Directive>, SyntaxError> {
    let mut count = 0;
    parse_file(source, included, 0, &mut count)
}

fn parse_file(
    source: &Source,
    included: Included<'_>,
    depth: usize,
    count: &mut usize,
) -> Result<Vec<Directive>, SyntaxError> {
    let mut parser = Parser {
        cursor: Cursor::new(source),
        count,
    };
    let directives = parser.block(0)?;
    expand(directives, included, depth, parser.count)
}

fn expand(
    directives: Vec<Directive>,
    included: Included<'_>,
    depth: usize,
    count: &mut usize,
) -> Result<Vec<Directive>, SyntaxError> {
    let mut expanded = Vec::new();
    for mut directive in directives {
        if let Some(block) = directive.block.take() {
            directive.block = Some(expand(block, included, depth, count)?);
        }
        let pattern = directive
            .words
            .first()
            .filter(|_| directive.name == "include");
        let files = pattern.and_then(|pattern| included(pattern));
        let Some(files) = files.filter(|_| depth <= MAX_DEPTH) else {
            expanded.push(directive);
            continue;
        };
        for file in files {
            expanded.extend(parse_file(&file, included, depth + 1, count)?);
        }
    }
    Ok(expanded)
}

struct Parser<'t, 'c> {
    cursor: Cursor<'t>,
    count: &'c mut usize,
}

impl Parser<'_, '_> {
    /// Parses directives up to the closing brace, or to the end of the file at depth 0.
    fn block(&mut self, depth: usize) -> Result<Vec<Directive>, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.cursor.error("blocks are nested more than 32 deep"));
        }
        let mut directives = Vec::new();
        let mut words: Vec<String> = Vec::new();
        let mut place = self.cursor.place();
        loop {
            self.skip_spaces();
            let Some(c) = self.cursor.peek() else {
                let is_whole = depth == 0 && words.is_empty();
                return if is_whole {
                    Ok(directives)
                } else {
                    Err(self
                        .cursor
                        .error("the file ends within a directive or a block"))
                };
            };
            if words.is_empty() {
                place = self.cursor.place();
            }
            match c {
                '#' => self.skip_comment(),
                ';' => {
                    self.cursor.bump();
                    directives.extend(self.directive(&mut words, None, &place)?);
                }
                '{' => {
                    self.cursor.bump();
                    let is_code = words
                        .first()
                        .is_some_and(|name| name.ends_with("_by_lua_block"));
                    let block = if is_code {
                        self.skip_code()?;
                        Vec::new()
                    } else {
                        self.block(depth + 1)?
                    };
                    directives.extend(self.directive(&mut words, Some(block), &place)?);
                }
                '}' if depth > 0 && words.is_empty() => {
                    self.cursor.bump();
                    return Ok(directives);
                }
                '}' => return Err(self.cursor.error("`}` closes nothing here")),
                _ => words.push(self.word()?),
            }
        }
    }

    fn directive(
        &mut self,
        words: &mut Vec<String>,
        block: Option<Vec<Directive>>,
        place: &Place,
    ) -> Result<Option<Directive>, SyntaxError> {
        *self.count += 1;
        if *self.count > MAX_DIRECTIVES {
            return Err(self.cursor.error("there are more than 200 000 directives"));
        }
        if words.is_empty() {
            return match block {
                Some(_) => Err(self.cursor.error("a block needs a name")),
                None => Ok(None),
            };
        }
        let name = words.remove(0);
        Ok(Some(Directive {
            name,
            words: std::mem::take(words),
            block,
            place: place.clone(),
        }))
    }

    fn word(&mut self) -> Result<String, SyntaxError> {
        let mut word = String::new();
        if let Some(quote) = self.cursor.bump_if(&['"', '\'']) {
            loop {
                match self.cursor.bump() {
                    Some('\\') => {
                        let next = self.cursor.bump();
                        match next {
                            Some(c) if c == quote || c == '\\' => word.push(c),
                            Some('n') => word.push('\n'),
                            Some(c) => word.extend(['\\', c]),
                            None => return Err(self.cursor.error("a quoted text has no end")),
                        }
                    }
                    Some(c) if c == quote => return Ok(word),
                    Some(c) => word.push(c),
                    None => return Err(self.cursor.error("a quoted text has no end")),
                }
            }
        }
        let mut has_variable = false;
        while let Some(c) = self.cursor.peek() {
            if c.is_whitespace() || c == ';' || (c == '{' && !word.ends_with('$')) {
                break;
            }
            if c == '}' && !has_variable {
                break;
            }
            has_variable |= c == '{' && word.ends_with('$');
            self.cursor.bump();
            word.push(c);
            if c == '\\' {
                word.extend(self.cursor.bump());
            }
        }
        Ok(word)
    }

    fn skip_spaces(&mut self) {
        while self.cursor.peek().is_some_and(char::is_whitespace) {
            self.cursor.bump();
        }
    }

    fn skip_comment(&mut self) {
        while self.cursor.peek().is_some_and(|c| c != '\n') {
            self.cursor.bump();
        }
    }

    /// Skips embedded code in braces.
    fn skip_code(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 1;
        while depth > 0 {
            match self.cursor.bump() {
                Some('{') => depth += 1,
                Some('}') => depth -= 1,
                Some(_) => {}
                None => return Err(self.cursor.error("a block has no end")),
            }
        }
        Ok(())
    }
}
