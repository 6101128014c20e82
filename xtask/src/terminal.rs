//! The two voices of a task: what it says and what it complains of.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output; a closed pipe is no fault.
pub(crate) fn say(line: impl Display) {
    drop(writeln!(io::stdout(), "{line}"));
}

/// Writes a line to standard error; a closed pipe is no fault.
pub(crate) fn complain(line: impl Display) {
    drop(writeln!(io::stderr(), "{line}"));
}
