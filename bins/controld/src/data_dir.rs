//! What lies in the data directory.

use crate::cli::StateArgs;
use crate::key_file::KeyFile;
use control_store::{ObjectError, Objects};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// The names of the database, of the object store and of the key file.
#[derive(Debug)]
pub(crate) struct DataDir {
    folder: PathBuf,
    pub(crate) database_url: String,
    object_store_url: Option<String>,
    pub(crate) key_file: KeyFile,
}

impl DataDir {
    /// As the command line names it; nothing is made or read yet.
    pub(crate) fn new(state: StateArgs) -> Self {
        let StateArgs {
            data_dir,
            database,
            object_store,
            master_key_file,
        } = state;
        let file = data_dir.join("control.db");
        let own = format!("sqlite://{}?mode=rwc", file.display());
        let key_file = master_key_file.unwrap_or_else(|| data_dir.join("master.key"));
        Self {
            folder: data_dir,
            database_url: database.unwrap_or(own),
            object_store_url: object_store,
            key_file: KeyFile::new(key_file),
        }
    }

    /// Makes the folder if it is not there; only its owner may enter.
    pub(crate) fn make(&self) -> Result<(), io::Error> {
        fs::create_dir_all(&self.folder)?;
        fs::set_permissions(&self.folder, Permissions::from_mode(0o700))
    }

    /// The object store: by its URL, or a folder of the data directory.
    pub(crate) fn objects(&self) -> Result<Objects, ObjectError> {
        match self.objects_by_url()? {
            Some(objects) => Ok(objects),
            None => Objects::in_folder(&self.folder.join("objects")),
        }
    }

    /// The object store behind a URL, if there is one; nothing is asked of it.
    pub(crate) fn objects_by_url(&self) -> Result<Option<Objects>, ObjectError> {
        let url = self.object_store_url.as_deref();
        url.map(|url| Objects::by_url(url, readable_variables()))
            .transpose()
    }
}

/// Environment variables with a name and value in UTF-8. The rest is ignored.
fn readable_variables() -> impl Iterator<Item = (String, String)> {
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}
