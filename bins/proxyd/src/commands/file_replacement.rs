//! Safe replacement of a file's contents.

use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Writes `text` to the regular file `path`, or creates it. The former contents stay until the new
/// ones are completely written, so that a full disk loses nothing.
///
/// # Errors
///
/// `path` is a folder or a device, or cannot be written.
pub(super) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let former = match fs::metadata(path) {
        Ok(former) if former.is_dir() => return Err(ErrorKind::IsADirectory.into()),
        Ok(former) if !former.is_file() => {
            return Err(io::Error::other("it is not a regular file"));
        }
        Ok(former) => Some(former),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    // A symbolic link stays, and its target is replaced.
    let path = match &former {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_owned(),
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let new = path.with_file_name(name);
    let written = fs::write(&new, text)
        .and_then(|()| match &former {
            Some(former) => fs::set_permissions(&new, former.permissions()),
            None => Ok(()),
        })
        .and_then(|()| fs::rename(&new, &path));
    if written.is_err() {
        drop(fs::remove_file(&new));
    }
    written
}
