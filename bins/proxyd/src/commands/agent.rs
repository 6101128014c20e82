//! `proxyd agent check`: conformance test of an external agent.

use crate::cli::AgentCheck;
use crate::terminal::{print_error, print_line};
use agent_check::Settings;
use agent_protocol::Header;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

const EXIT_FAILED: u8 = 1;
const EXIT_USAGE: u8 = 2;

/// Runs the conformance cases. Exit code 0: all passed; 1: some failed; 2: invalid use.
pub(crate) fn check(arguments: AgentCheck) -> io::Result<ExitCode> {
    let AgentCheck {
        socket,
        headers,
        timeout_ms,
        json,
    } = arguments;
    let headers: Result<Vec<_>, String> = headers.iter().map(|text| header(text)).collect();
    let headers = match headers {
        Ok(headers) => headers,
        Err(text) => {
            print_error(format_args!(
                "--header {text}: is not a header field; write `Name: value`"
            ));
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    let report = agent_check::check(&Settings {
        socket,
        timeout: Duration::from_millis(timeout_ms),
        headers,
    });
    if json {
        match serde_json::to_string_pretty(&report) {
            Ok(text) => print_line(text)?,
            Err(error) => {
                print_error(error);
                return Ok(ExitCode::from(EXIT_FAILED));
            }
        }
    } else {
        print_line(&report)?;
    }
    if report.failed == 0 {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::from(EXIT_FAILED))
    }
}

fn header(text: &str) -> Result<Header<'static>, String> {
    let field = text.split_once(':');
    let header = field.and_then(|(name, value)| {
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        Header::new(name, value).ok()
    });
    header.ok_or_else(|| text.to_owned())
}
