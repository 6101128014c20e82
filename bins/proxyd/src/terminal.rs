//! Words to the one at the terminal.

use miette::MietteHandlerOpts;
use proxy_config::Report;
use std::fmt::Display;
use std::io::{IsTerminal, Write};

/// Says something on the standard output.
pub(crate) fn say(text: impl Display) {
    // A closed pipe is no reason to fail: whoever reads has read enough.
    drop(writeln!(std::io::stdout().lock(), "{text}"));
}

/// Complains on the standard error output.
pub(crate) fn complain(text: impl Display) {
    drop(writeln!(std::io::stderr().lock(), "{text}"));
}

/// Shows a report on the standard error output: to the width of a terminal, in colours unless `NO_COLOR`
/// is set, in sentences where `NO_GRAPHICS` is; in plain ASCII where the output is no terminal.
pub(crate) fn complain_of(report: &Report) {
    if std::io::stderr().is_terminal() || std::env::var_os("NO_GRAPHICS").is_some() {
        let handler = MietteHandlerOpts::new().terminal_links(false).build();
        complain(report.with_handler(&handler));
    } else {
        complain(report);
    }
}
