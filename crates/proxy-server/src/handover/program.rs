//! How this program is started again.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a new process may take until it serves, unless it is said.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// A program that can take over from this process: what SIGUSR2 starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The file, absolute. What stands there when the signal comes is started.
    pub path: PathBuf,
    /// Its arguments, without its name.
    pub arguments: Vec<OsString>,
    /// Where it is started.
    pub folder: PathBuf,
    /// How long it may take until it serves; then it is ended and this process goes on.
    pub timeout: Duration,
}

impl Program {
    /// The program that this process runs, by the path and with the arguments that it was started with.
    ///
    /// To be called early: it goes by the present folder and `PATH`. The path is not that of the file
    /// that runs but the one that was asked for, so that a file put in its place, or a symbolic link
    /// turned elsewhere, is what an upgrade starts.
    ///
    /// # Errors
    /// When the process has no folder, or nobody can tell the file.
    pub fn of_this_process() -> io::Result<Self> {
        let folder = env::current_dir()?;
        let mut arguments = env::args_os();
        let name = PathBuf::from(arguments.next().unwrap_or_default());
        let path = if name.as_os_str().as_bytes().contains(&b'/') {
            folder.join(name)
        } else {
            match in_path(&name) {
                Some(path) => folder.join(path),
                None => env::current_exe()?,
            }
        };
        Ok(Self {
            path,
            arguments: arguments.collect(),
            folder,
            timeout: START_TIMEOUT,
        })
    }
}

fn in_path(name: &Path) -> Option<PathBuf> {
    if name.as_os_str().is_empty() {
        return None;
    }
    let folders = env::var_os("PATH")?;
    let mut files = env::split_paths(&folders).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_knows_how_it_was_started() {
        let program = Program::of_this_process().unwrap();

        assert!(program.path.is_absolute() && program.path.is_file());
        assert_eq!(program.arguments.len(), env::args_os().count() - 1);
    }

    #[test]
    fn names_are_looked_for_where_a_shell_would() {
        assert!(in_path(Path::new("sh")).unwrap().ends_with("sh"));
        assert_eq!(in_path(Path::new("no-such-program-anywhere")), None);
    }
}
