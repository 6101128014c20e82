//! Executes the program that publishes TXT records for DNS-01.

use crate::error::{AcmeError, readable};
use crate::settings::DnsCommand;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Environment of the program, which has only this variable.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Maximum size of the program's output that is kept for the log.
const MAX_OUTPUT_BYTES: usize = 1024;

/// Task for the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecordChange {
    /// Publish the record, and exit when the authority's resolvers can see it.
    Present,
    /// Remove the record.
    Cleanup,
}

/// Reason why the program failed.
enum RunError {
    Io(io::Error),
    TimedOut(Duration),
    Failed(ExitStatus, String),
}

/// Runs the program for the TXT record `name`. Blocks until it exits, at most for its timeout.
pub(crate) fn run(
    command: &DnsCommand,
    change: RecordChange,
    name: &str,
    value: &str,
) -> Result<(), AcmeError> {
    let action = match change {
        RecordChange::Present => "present",
        RecordChange::Cleanup => "cleanup",
    };
    let ran = run_program(command, [action, name, value]);
    ran.map_err(|fault| AcmeError::DnsCommand {
        name: name.to_owned(),
        why: match fault {
            RunError::Io(error) => format!("cannot be run: {error}"),
            RunError::TimedOut(time) => format!("was killed after {} s", time.as_secs()),
            RunError::Failed(status, output) => format!("ended with {status}: {output}"),
        },
    })
}

fn run_program(command: &DnsCommand, arguments: [&str; 3]) -> Result<(), RunError> {
    let DnsCommand { program, timeout } = command;
    let mut child = Command::new(program)
        .args(arguments)
        .env_clear()
        .env("PATH", PATH)
        .current_dir("/")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .map_err(RunError::Io)?;
    let ended = wait(&mut child, *timeout);
    if ended.is_err() {
        kill(&child);
    }
    // Reaps the child process, which has exited or was killed.
    let status = child.wait().map_err(RunError::Io)?;
    let output = ended?;
    if status.success() {
        return Ok(());
    }
    let output = String::from_utf8_lossy(&output);
    Err(RunError::Failed(status, readable(output.trim())))
}

/// Waits until the program exits; returns the start of its standard error.
fn wait(child: &mut Child, timeout: Duration) -> Result<Vec<u8>, RunError> {
    let id = pid(child).ok_or(RunError::Io(io::ErrorKind::InvalidInput.into()))?;
    let process =
        pidfd_open(id, PidfdFlags::empty()).map_err(|error| RunError::Io(error.into()))?;
    let mut errors = child.stderr.take();
    let mut output = Vec::new();
    let deadline = Timespec::try_from(timeout).ok();
    let mut left = deadline;
    loop {
        let begun = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
        let mut polled = vec![PollFd::new(&process, PollFlags::IN)];
        if let Some(errors) = &errors {
            polled.push(PollFd::from_borrowed_fd(errors.as_fd(), PollFlags::IN));
        }
        match poll(&mut polled, left.as_ref()) {
            Ok(0) => return Err(RunError::TimedOut(timeout)),
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(RunError::Io(error.into())),
            Ok(_) => {}
        }
        let ready: Vec<bool> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
        if ready.get(1) == Some(&true) && !read_some(&mut errors, &mut output)? {
            errors = None;
        }
        if ready.first() == Some(&true) {
            return Ok(output);
        }
        let spent = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic) - begun;
        left = left.map(|left| (left - spent).max(Timespec::default()));
    }
}

/// Reads the available bytes; returns false at the end.
fn read_some(errors: &mut Option<impl Read>, output: &mut Vec<u8>) -> Result<bool, RunError> {
    let mut buffer = [0; MAX_OUTPUT_BYTES];
    let Some(errors) = errors else {
        return Ok(false);
    };
    let count = errors.read(&mut buffer).map_err(RunError::Io)?;
    let room = MAX_OUTPUT_BYTES.saturating_sub(output.len());
    output.extend(buffer.iter().take(count.min(room)));
    Ok(count > 0)
}

/// Kills the program and its child processes.
fn kill(child: &Child) {
    if let Some(id) = pid(child) {
        // The process may have exited.
        let _ended = kill_process_group(id, Signal::KILL);
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    fn command(folder: &Path, script: &str, timeout: Duration) -> DnsCommand {
        let program = folder.join("dns");
        fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        DnsCommand { program, timeout }
    }

    fn present(command: &DnsCommand) -> Result<(), String> {
        let name = "_acme-challenge.a.example";
        let ran = run(command, RecordChange::Present, name, "value");
        ran.map_err(|error| error.to_string())
    }

    const LONG_TIMEOUT: Duration = Duration::from_mins(1);

    #[test]
    fn the_program_gets_its_arguments_and_no_environment() {
        let folder = tempfile::tempdir().unwrap();
        let seen = folder.path().join("seen");
        let script = format!("echo \"$@\" > {0}; env >> {0}", seen.display());
        present(&command(folder.path(), &script, LONG_TIMEOUT)).unwrap();
        let seen = fs::read_to_string(seen).unwrap();
        let mut lines: Vec<&str> = seen.lines().collect();
        assert_eq!(lines.remove(0), "present _acme-challenge.a.example value");
        // Shells set some variables themselves.
        lines.retain(|line| {
            !["PWD=", "SHLVL=", "_="]
                .iter()
                .any(|own| line.starts_with(own))
        });
        assert_eq!(lines, [format!("PATH={PATH}")]);
    }

    #[test]
    fn a_failure_is_reported_with_the_output_of_the_program() {
        let folder = tempfile::tempdir().unwrap();
        let script = "echo 'no such zone' >&2; head -c 100000 /dev/zero | tr '\\0' x >&2; exit 3";
        let fault = present(&command(folder.path(), script, LONG_TIMEOUT)).unwrap_err();
        assert!(fault.contains("exit status: 3"), "{fault}");
        assert!(fault.contains("no such zone"), "{fault}");
        let missing = DnsCommand {
            program: folder.path().join("missing"),
            timeout: LONG_TIMEOUT,
        };
        assert!(present(&missing).unwrap_err().contains("cannot be run"));
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let folder = tempfile::tempdir().unwrap();
        // The grandchild keeps standard error open.
        let hangs = command(
            folder.path(),
            "tail -f /dev/null & wait",
            Duration::from_millis(50),
        );
        let fault = present(&hangs).unwrap_err();
        assert!(fault.contains("was killed"), "{fault}");
    }
}
