//! What lies in the data directory.

use crate::cli::StateArgs;
use crate::key_file::KeyFile;
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The names of the database and of the key file.
#[derive(Debug)]
pub(crate) struct DataDir {
    folder: PathBuf,
    pub(crate) database_url: String,
    pub(crate) key_file: KeyFile,
}

impl DataDir {
    /// As the command line names it; nothing is made or read yet.
    pub(crate) fn new(state: StateArgs) -> Self {
        let StateArgs {
            data_dir,
            database,
            master_key_file,
        } = state;
        let file = data_dir.join("control.db");
        let own = format!("sqlite://{}?mode=rwc", file.display());
        let key_file = master_key_file.unwrap_or_else(|| data_dir.join("master.key"));
        Self {
            folder: data_dir,
            database_url: database.unwrap_or(own),
            key_file: KeyFile::new(key_file),
        }
    }

    /// Makes the folder if it is not there; only its owner may enter.
    pub(crate) fn make(&self) -> Result<(), io::Error> {
        fs::create_dir_all(&self.folder)?;
        fs::set_permissions(&self.folder, Permissions::from_mode(0o700))
    }
}
