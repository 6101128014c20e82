//! Starts other programs, and checks their results.

use crate::task_error::TaskError;
use std::env;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;

/// Runs a command, with its output on the terminal.
///
/// # Errors
/// It cannot be started, or exits with a code other than 0.
pub fn run(command: &mut Command) -> Result<(), TaskError> {
    let status = command
        .status()
        .map_err(|cause| cannot_start(command, cause))?;
    succeeded(command, status)
}

/// Runs a command and returns its standard output; standard error goes to the terminal.
///
/// # Errors
/// It cannot be started, or exits with a code other than 0.
pub fn read(command: &mut Command) -> Result<String, TaskError> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|cause| cannot_start(command, cause))?;
    succeeded(command, output.status)?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs a command without output. Returns true if it exits with 0.
pub fn works(command: &mut Command) -> bool {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// Runs a command, with its output on the terminal, and passes each line to `see`.
///
/// # Errors
/// It cannot be started.
pub fn watch(command: &mut Command, see: &(dyn Fn(&str) + Sync)) -> Result<ExitStatus, TaskError> {
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|cause| cannot_start(command, cause))?;
    let (out, err) = (child.stdout.take(), child.stderr.take());
    thread::scope(|scope| {
        scope.spawn(|| out.map(|pipe| pass_on(pipe, &mut io::stdout(), see)));
        scope.spawn(|| err.map(|pipe| pass_on(pipe, &mut io::stderr(), see)));
    });
    child.wait().map_err(|cause| cannot_start(command, cause))
}

/// Checks the exit status of a command.
///
/// # Errors
/// The status is not success.
pub fn succeeded(command: &Command, status: ExitStatus) -> Result<(), TaskError> {
    if status.success() {
        return Ok(());
    }
    Err(TaskError::Ended {
        program: spoken(command),
        status,
    })
}

/// Finds an installed program by its name.
pub fn find(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    // Debian's `PATH` of ordinary users excludes the folders of server programs.
    let system = [PathBuf::from("/usr/sbin"), PathBuf::from("/sbin")];
    env::split_paths(&path)
        .chain(system)
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

fn pass_on(pipe: impl Read, terminal: &mut dyn Write, see: &(dyn Fn(&str) + Sync)) {
    let mut pipe = BufReader::new(pipe);
    let mut line = Vec::new();
    while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
        drop(terminal.write_all(&line));
        see(&String::from_utf8_lossy(&line));
        line.clear();
    }
}

fn cannot_start(command: &Command, source: io::Error) -> TaskError {
    TaskError::Start {
        program: spoken(command),
        source,
    }
}

fn spoken(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    let name = program.rsplit('/').next().unwrap_or_default();
    let arguments = command
        .get_args()
        .map(|argument| argument.to_string_lossy());
    std::iter::once(name.into())
        .chain(arguments)
        .collect::<Vec<_>>()
        .join(" ")
}
