//! Output folders of developer tasks.

use crate::task_error::TaskError;
use std::fs;
use std::io;
use std::path::Path;

/// Creates `folder`, or empties it.
///
/// # Errors
/// It cannot be created, or an entry cannot be deleted.
pub fn empty(folder: &Path) -> Result<(), TaskError> {
    let gone = match fs::remove_dir_all(folder) {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    };
    gone.and_then(|()| fs::create_dir_all(folder))
        .map_err(|source| TaskError::File {
            path: folder.to_owned(),
            source,
        })
}
