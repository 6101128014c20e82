//! Output to the terminal.

use miette::MietteHandlerOpts;
use proxy_config::Report;
use std::fmt::Display;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::process::ExitCode;

/// Exit code if standard output cannot be written. Differs from success and failure, because the
/// caller has not received the result.
const EXIT_OUTPUT_ERROR: u8 = 2;

/// Writes a line to standard output. A closed pipe, as with `| head`, is not an error.
pub(crate) fn print_line(text: impl Display) -> io::Result<()> {
    unless_closed(writeln!(io::stdout().lock(), "{text}"))
}

/// Prints help, or the error of a command line. Exit code 0 after help, 2 for an error.
pub(crate) fn print_usage(usage: &clap::Error) -> io::Result<ExitCode> {
    let printed = usage.print();
    if usage.use_stderr() {
        return Ok(ExitCode::from(2));
    }
    unless_closed(printed).map(|()| ExitCode::SUCCESS)
}

/// Returns the command's exit code, or prints the error of its output.
pub(crate) fn exit_code(done: io::Result<ExitCode>) -> ExitCode {
    done.unwrap_or_else(|error| {
        print_error(format_args!(
            "proxyd: cannot write to standard output: {error}"
        ));
        ExitCode::from(EXIT_OUTPUT_ERROR)
    })
}

fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

pub(crate) fn print_error(text: impl Display) {
    drop(writeln!(io::stderr().lock(), "{text}"));
}

/// Prints a report to standard error. For terminals it is wrapped, and coloured unless `NO_COLOR`
/// is set; with `NO_GRAPHICS` it consists of sentences. Otherwise it is plain ASCII.
pub(crate) fn print_report(report: &Report) {
    if io::stderr().is_terminal() || std::env::var_os("NO_GRAPHICS").is_some() {
        let handler = MietteHandlerOpts::new().terminal_links(false).build();
        print_error(report.with_handler(&handler));
    } else {
        print_error(report);
    }
}
