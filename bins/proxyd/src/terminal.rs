//! Words to the one at the terminal.

use std::fmt::Display;
use std::io::Write;

/// Says something on the standard output.
pub(crate) fn say(text: impl Display) {
    // A closed pipe is no reason to fail: whoever reads has read enough.
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// Complains on the standard error output.
pub(crate) fn complain(text: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}
