//! Output of commands to standard output.

use std::fmt::Arguments;
use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

///
/// # Errors
///
/// As for [`write_text`]; the error names standard output.
pub(crate) fn print_line(line: Arguments<'_>) -> io::Result<()> {
    write_text(&format!("{line}\n"))
        .map_err(|error| io::Error::new(error.kind(), format!("standard output: {error}")))
}

/// Writes a text and flushes it. A closed pipe, as with `| head`, is not an error.
///
/// # Errors
///
/// Any other write error, for example of a full disk.
pub(crate) fn write_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    unless_closed(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// Prints help or a command-line error. Exit code 0 after help, 2 for an error, 1 if help cannot be
/// written.
#[expect(clippy::print_stderr, reason = "the operator reads it")]
pub(crate) fn print_usage(usage: &clap::Error) -> ExitCode {
    let printed = usage.print();
    if usage.use_stderr() {
        return ExitCode::from(2);
    }
    match unless_closed(printed) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: standard output: {error}");
            ExitCode::FAILURE
        }
    }
}

fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}
