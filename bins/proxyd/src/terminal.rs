//! Output to the terminal.

use miette::MietteHandlerOpts;
use proxy_config::Report;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Writes to standard output.
pub(crate) fn say(text: impl Display) {
    // A closed pipe is not an error: the reader has read enough.
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// Writes to standard error.
pub(crate) fn print_error(text: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Shows a report on the standard error output: to the width of a terminal, in colours unless `NO_COLOR`
/// is set, in sentences where `NO_GRAPHICS` is; in plain ASCII where the output is no terminal.
pub(crate) fn print_report(report: &Report) {
    if std::io::stderr().is_terminal() || std::env::var_os("NO_GRAPHICS").is_some() {
        let handler = MietteHandlerOpts::new().terminal_links(false).build();
        print_error(report.with_handler(&handler));
    } else {
        print_error(report);
    }
}
