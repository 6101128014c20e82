//! The program that an upgrade starts.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Default of the maximum time until a new process serves.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// The program started by SIGUSR2 to take over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// Absolute path; resolved when the signal arrives.
    pub path: PathBuf,
    /// Arguments, without the program's name.
    pub arguments: Vec<OsString>,
    /// Working directory.
    pub folder: PathBuf,
    /// Maximum time until the new process serves; after that it is killed and this process
    /// continues.
    pub timeout: Duration,
}

impl Program {
    /// The program of this process, with the path and the arguments that it was started with.
    ///
    /// Call it early, because it uses the working directory and `PATH`. The path is the one that
    /// was started, not the running file's, so that an upgrade starts a replaced file or the new
    /// target of a link.
    ///
    /// # Errors
    /// The process has no working directory, or its file cannot be determined.
    pub fn current() -> io::Result<Self> {
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
    fn the_current_program_has_an_absolute_path_and_all_arguments() {
        let program = Program::current().unwrap();

        assert!(program.path.is_absolute() && program.path.is_file());
        assert_eq!(program.arguments.len(), env::args_os().count() - 1);
    }

    #[test]
    fn names_are_looked_for_where_a_shell_would() {
        assert!(in_path(Path::new("sh")).unwrap().ends_with("sh"));
        assert_eq!(in_path(Path::new("no-such-program-anywhere")), None);
    }
}
