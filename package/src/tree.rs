//! Files of a package: their modes do not depend on this machine.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

/// Mode of a program and of a maintainer script.
pub(crate) const EXECUTABLE: u32 = 0o755;
const FILE: u32 = 0o644;
const FOLDER: u32 = 0o755;

/// Reads a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, TaskError> {
    fs::read(path).map_err(|source| fault(path, source))
}

/// Reads a file of text.
pub(crate) fn read_text(path: &Path) -> Result<String, TaskError> {
    fs::read_to_string(path).map_err(|source| fault(path, source))
}

/// Writes a file that all may read, with the folders above it.
pub(crate) fn write(path: &Path, contents: impl AsRef<[u8]>) -> Result<(), TaskError> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|source| fault(folder, source))?;
    }
    fs::write(path, contents).map_err(|source| fault(path, source))?;
    set_mode(path, FILE)
}

/// Makes a folder, with those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), TaskError> {
    fs::create_dir_all(path).map_err(|source| fault(path, source))
}

/// Writes a file that all may run.
pub(crate) fn write_script(path: &Path, text: &str) -> Result<(), TaskError> {
    write(path, text)?;
    set_mode(path, EXECUTABLE)
}

/// Copies the files of a folder that end in `.{extension}`, in the order of their names.
pub(crate) fn copy_files(from: &Path, extension: &str, to: &Path) -> Result<(), TaskError> {
    for entry in entries(from)? {
        if entry.extension().is_some_and(|found| found == extension) {
            let name = entry.file_name().unwrap_or_default();
            write(&to.join(name), read(&entry)?)?;
        }
    }
    Ok(())
}

/// Copies a program without its symbols.
pub(crate) fn copy_stripped(program: &Path, to: &Path) -> Result<(), TaskError> {
    write(to, [])?;
    let mut strip = Command::new("strip");
    strip.args(["--strip-unneeded", "--remove-section=.comment", "-o"]);
    command::run(strip.arg(to).arg(program))?;
    set_mode(to, EXECUTABLE)
}

/// Compresses a file by gzip, without its name and its time, and removes it.
pub(crate) fn compress(path: &Path) -> Result<(), TaskError> {
    command::run(Command::new("gzip").args(["-9", "-n", "-f"]).arg(path))
}

/// Sets the mode of a file.
pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<(), TaskError> {
    fs::set_permissions(path, Permissions::from_mode(mode)).map_err(|source| fault(path, source))
}

/// Sets the mode of `root` and of all folders below it, and returns the files in order.
pub(crate) fn set_folder_modes(root: &Path) -> Result<Vec<PathBuf>, TaskError> {
    set_mode(root, FOLDER)?;
    let mut files = Vec::new();
    for entry in entries(root)? {
        if entry.is_dir() {
            files.extend(set_folder_modes(&entry)?);
        } else {
            files.push(entry);
        }
    }
    Ok(files)
}

/// The entries of a folder, by name.
pub(crate) fn entries(folder: &Path) -> Result<Vec<PathBuf>, TaskError> {
    let read = fs::read_dir(folder).map_err(|source| fault(folder, source))?;
    let mut entries: Vec<PathBuf> = read.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    Ok(entries)
}

fn fault(path: &Path, source: std::io::Error) -> TaskError {
    TaskError::File {
        path: path.to_owned(),
        source,
    }
}
