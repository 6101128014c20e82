//! Output of developer tasks.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output. A closed pipe is not an error.
pub fn say(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

/// Writes a line to standard error. A closed pipe is not an error.
pub fn print_error(line: impl Display) {
    drop(writeln!(io::stderr(), "{line}"));
}
