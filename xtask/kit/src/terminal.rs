//! Output of tasks.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output; a closed pipe is not an error.
pub fn say(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

/// Writes a line to standard error; a closed pipe is not an error.
pub fn print_error(line: impl Display) {
    drop(writeln!(io::stderr(), "{line}"));
}
