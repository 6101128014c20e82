//! Requests made with curl, a client that we did not write.

use crate::command;
use crate::task_error::TaskError;
use std::process::Command;

/// Longest that one transfer may take.
const MOST_SECONDS: &str = "300";

/// An answer as curl received it.
#[derive(Debug)]
pub(super) struct Answer {
    /// The status of the final response.
    pub(super) status: u16,
    /// The body.
    pub(super) body: String,
    head: String,
}

impl Answer {
    /// The value of a header, whose name is given in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.head.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = headers.find(|(header, _)| header.eq_ignore_ascii_case(name))?;
        Some(value.trim())
    }
}

/// A request whose answer is small.
pub(super) fn get(url: &str, options: &[&str]) -> Result<Answer, TaskError> {
    let output = command::read(curl().arg("--include").args(options).arg(url))?;
    let mut rest = output.as_str();
    loop {
        let (head, body) = rest.split_once("\r\n\r\n").unwrap_or((rest, ""));
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        match status {
            // Interim responses come before the one that counts.
            Some(100..=199) => rest = body,
            Some(status) => {
                return Ok(Answer {
                    status,
                    body: body.to_owned(),
                    head: head.to_owned(),
                });
            }
            None => return Err(TaskError::Failed(format!("{url} answered {output:?}"))),
        }
    }
}

/// A transfer of which only what `format` asks for is kept, as curl's `--write-out` defines it.
pub(super) fn transfer(url: &str, format: &str, options: &[&str]) -> Result<String, TaskError> {
    command::read(
        curl()
            .args(["--output", "/dev/null", "--write-out", format])
            .args(options)
            .arg(url),
    )
}

/// An environment that names a proxy must not come between the demo and its own.
fn curl() -> Command {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--noproxy", "*"]);
    curl.args(["--max-time", MOST_SECONDS]);
    curl
}
