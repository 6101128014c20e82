//! Error recovery, so that one pass finds all syntax errors.

use super::chars::is_newline;
use super::scan::Scanner;

/// Skips the remainder of a broken node: to the end of its line, and over its block if it has one.
/// Stops before a `}` that closes the block around it.
pub(super) fn skip_node(scanner: &mut Scanner<'_>) {
    let mut depth = 0_usize;
    loop {
        match scanner.peek() {
            None => return,
            Some('}') if depth == 0 => return,
            Some('}') => depth -= 1,
            Some('{') => depth += 1,
            Some(c) if depth == 0 && (is_newline(c) || c == ';') => return,
            Some('"') => {
                skip_text(scanner);
                continue;
            }
            Some('/') if scanner.line_comment() => continue,
            Some(_) => {}
        }
        scanner.bump();
    }
}

/// Skips quoted text, or the rest of the line if it is not closed there.
fn skip_text(scanner: &mut Scanner<'_>) {
    scanner.bump();
    loop {
        match scanner.peek() {
            Some('\\') => {
                scanner.bump();
                if !scanner.peek().is_some_and(is_newline) {
                    scanner.bump();
                }
            }
            Some('"') => {
                scanner.bump();
                return;
            }
            Some(c) if !is_newline(c) => {
                scanner.bump();
            }
            Some(_) | None => return,
        }
    }
}
