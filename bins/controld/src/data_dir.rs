//! Locations of database, object store and key file: in the data directory, or outside of it.

use crate::cli::StateArgs;
use crate::error_text::error_text;
use crate::key_file::KeyFile;
use control_store::{ObjectError, Objects, StoreError};
use std::error::Error;
use std::fs::{self, DirBuilder, File, Permissions, TryLockError};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

const DATABASE_FILE: &str = "control.db";
const KEY_FILE: &str = "master.key";
const OBJECT_FOLDER: &str = "objects";
/// Locked by the process that serves the data directory.
const LOCK_FILE: &str = "controld.lock";

#[derive(Debug)]
pub(crate) struct DataDir {
    folder: PathBuf,
    pub(crate) database_url: String,
    has_database_url: bool,
    /// False if database, object store and key file are all outside of the folder.
    is_used: bool,
    object_store_url: Option<String>,
    /// Whether the key file has a path of its own.
    has_key_path: bool,
    pub(crate) key_file: KeyFile,
}

impl DataDir {
    /// Reads the locations from the command line, without touching the folder.
    pub(crate) fn new(state: StateArgs) -> Self {
        let StateArgs {
            data_dir,
            database,
            object_store,
            master_key_file,
        } = state;
        let file = data_dir.join(DATABASE_FILE);
        let own = format!("sqlite://{}?mode=rwc", file.display());
        let is_used = database.is_none() || object_store.is_none() || master_key_file.is_none();
        let has_key_path = master_key_file.is_some();
        let key_file = master_key_file.unwrap_or_else(|| data_dir.join(KEY_FILE));
        Self {
            folder: data_dir,
            is_used,
            has_database_url: database.is_some(),
            database_url: database.unwrap_or(own),
            object_store_url: object_store,
            has_key_path,
            key_file: KeyFile::new(key_file),
        }
    }

    /// Returns true if the database is a file in the folder, and exists.
    pub(crate) fn has_database_file(&self) -> bool {
        !self.has_database_url && self.folder.join(DATABASE_FILE).exists()
    }

    /// Returns the path of the database file if it belongs in the folder but does not exist.
    pub(crate) fn missing_database(&self) -> Option<PathBuf> {
        let file = self.folder.join(DATABASE_FILE);
        (!self.has_database_url && !file.exists()).then_some(file)
    }

    /// Formats an error with the setting and path of the folder.
    pub(crate) fn at_folder(&self, error: &dyn Error) -> String {
        format!(
            "--data-dir {}: {}",
            self.folder.display(),
            error_text(error)
        )
    }

    /// Formats an error with the setting of the database. Omits the URL, which may contain a
    /// password.
    pub(crate) fn at_database(&self, error: &StoreError) -> String {
        let is_unavailable = matches!(error, StoreError::Unavailable(_));
        match (self.has_database_url, is_unavailable) {
            (true, true) => format!(
                "--database: {}; start it, or name another one",
                error_text(error)
            ),
            (true, false) => format!("--database: {}", error_text(error)),
            (false, _) => self.at_folder(error),
        }
    }

    /// Formats an error with the setting of the object store.
    pub(crate) fn at_objects(&self, error: &ObjectError) -> String {
        match &self.object_store_url {
            Some(_) => format!("--object-store: {}", error_text(error)),
            None => self.at_folder(error),
        }
    }

    /// Creates the folder if it is used, for its owner alone. Access of other users to an existing folder
    /// is taken away and logged if the folder is empty or has state of a control plane, as by
    /// `PostgreSQL`; any other folder is refused, because it serves something else, too.
    pub(crate) fn create(&self) -> Result<(), Box<dyn Error>> {
        if !self.is_used {
            return Ok(());
        }
        if let Some(parent) = self.folder.parent().filter(|it| *it != Path::new("")) {
            fs::create_dir_all(parent)?;
        }
        match DirBuilder::new().mode(0o700).create(&self.folder) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error.into()),
            Err(_) => self.claim(),
            Ok(()) => Ok(()),
        }
    }

    fn claim(&self) -> Result<(), Box<dyn Error>> {
        let found = fs::metadata(&self.folder)?;
        if !found.is_dir() {
            return Err("is not a folder".into());
        }
        let mode = found.mode() & 0o777;
        if mode | 0o700 == 0o700 {
            return Ok(());
        }
        let is_empty = fs::read_dir(&self.folder)?.next().is_none();
        if !is_empty && !self.has_state() {
            let remedy = "name an empty or a new folder, or chmod 700 it";
            return Err(format!(
                "is open to others, with mode {mode:03o}, and has files that need not be of a control plane; {remedy}"
            )
            .into());
        }
        let changed = fs::set_permissions(&self.folder, Permissions::from_mode(0o700));
        changed.map_err(|error| {
            let remedy = "name a new folder in it, or chown it to this user";
            format!(
                "is open to others, with mode {mode:03o}, and cannot be changed: {error}; {remedy}"
            )
        })?;
        let folder = self.folder.display();
        tracing::warn!(%folder, "the data folder was open to others, with mode {mode:03o}; its mode is now 700");
        Ok(())
    }

    /// Returns true if the folder is of a control plane: it has its database or lock, or, with a
    /// database elsewhere, all parts that the settings leave in it. With a database in it, key file
    /// and objects may be another program's, as in a Git repository.
    fn has_state(&self) -> bool {
        let has = |name: &str| self.folder.join(name).exists();
        if self.has_database_url {
            let has_key = self.has_key_path || has(KEY_FILE);
            return has_key && (self.object_store_url.is_some() || has(OBJECT_FOLDER));
        }
        has(DATABASE_FILE) || has(LOCK_FILE)
    }

    /// Locks a database file in the folder against a second process, until the result is dropped.
    /// Nothing is locked for a database elsewhere, because replicas may share the folder.
    pub(crate) fn lock(&self) -> Result<Option<File>, String> {
        if self.has_database_url {
            return Ok(None);
        }
        let at_folder = |reason: &str| format!("--data-dir {}: {reason}", self.folder.display());
        let mut options = File::options();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = options.open(self.folder.join(LOCK_FILE)).map_err(|error| {
            at_folder(&format!(
                "cannot be written: {error}; it holds the database"
            ))
        })?;
        match file.try_lock() {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => {
                let remedy = "stop it, or let replicas share a PostgreSQL";
                Err(at_folder(&format!("another controld runs on it; {remedy}")))
            }
            Err(TryLockError::Error(error)) => Err(at_folder(&error.to_string())),
        }
    }

    /// Opens the object store: by its URL, else in the folder.
    pub(crate) fn objects(&self) -> Result<Objects, ObjectError> {
        match self.objects_by_url()? {
            Some(objects) => Ok(objects),
            None => Objects::in_folder(&self.folder.join(OBJECT_FOLDER)),
        }
    }

    /// Returns the object store if it has a URL, without connecting to it.
    pub(crate) fn objects_by_url(&self) -> Result<Option<Objects>, ObjectError> {
        let url = self.object_store_url.as_deref();
        url.map(|url| Objects::by_url(url, readable_variables()))
            .transpose()
    }
}

/// Returns the environment variables with name and value in UTF-8; ignores the rest.
fn readable_variables() -> impl Iterator<Item = (String, String)> {
    let variables = std::env::vars_os();
    variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_not_made_for_state_that_is_elsewhere() {
        let made = tempfile::tempdir().unwrap();
        let file = made.path().join("file");
        fs::write(&file, "").unwrap();
        let inside = |folder: &str, database: Option<&str>| {
            let state = StateArgs {
                data_dir: made.path().join(folder),
                database: database.map(str::to_owned),
                object_store: Some("s3://bundles".to_owned()),
                master_key_file: Some(file.clone()),
            };
            DataDir::new(state).create()
        };
        let elsewhere = Some("postgres://localhost/control");
        assert!(inside("file/data", elsewhere).is_ok());
        assert!(inside("file/data", None).is_err(), "its database is there");
        assert!(inside("data", None).is_ok());
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(made.path().join("data")), 0o700);
    }

    #[test]
    fn a_folder_that_serves_something_else_is_not_closed_to_others() {
        let made = tempfile::tempdir().unwrap();
        let folder = made.path().join("data");
        let make = || {
            DataDir::new(StateArgs {
                data_dir: folder.clone(),
                database: None,
                object_store: None,
                master_key_file: None,
            })
            .create()
        };
        let mode = || fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
        let open = || fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
        fs::create_dir(&folder).unwrap();
        open();
        assert!(make().is_ok(), "it is empty");
        assert_eq!(mode(), 0o700);
        open();
        fs::write(folder.join("letter"), "").unwrap();
        let refused = make().unwrap_err().to_string();
        assert!(refused.contains("mode 755"), "{refused}");
        assert_eq!(mode(), 0o755);
        fs::write(folder.join(DATABASE_FILE), "").unwrap();
        assert!(make().is_ok(), "it is the folder of a control plane");
        assert_eq!(mode(), 0o700);
    }

    #[test]
    fn names_that_other_programs_use_do_not_make_a_folder_ours() {
        let elsewhere = Some("postgres://localhost/control");
        let bucket = Some("s3://bundles");
        for (names, database, objects, is_own) in [
            (&[KEY_FILE, OBJECT_FOLDER][..], None, None, false),
            (&[LOCK_FILE], None, None, true),
            (&[OBJECT_FOLDER, DATABASE_FILE], None, None, true),
            (&[KEY_FILE], elsewhere, None, false),
            (&[KEY_FILE, OBJECT_FOLDER], elsewhere, None, true),
            (&[KEY_FILE], elsewhere, bucket, true),
        ] {
            let made = tempfile::tempdir().unwrap();
            let folder = made.path().join("data");
            fs::create_dir(&folder).unwrap();
            fs::set_permissions(&folder, Permissions::from_mode(0o755)).unwrap();
            for name in names {
                fs::write(folder.join(name), "").unwrap();
            }
            let state = StateArgs {
                data_dir: folder.clone(),
                database: database.map(str::to_owned),
                object_store: objects.map(str::to_owned),
                master_key_file: None,
            };
            assert_eq!(DataDir::new(state).create().is_ok(), is_own, "{names:?}");
            let mode = fs::metadata(&folder).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode, if is_own { 0o700 } else { 0o755 }, "{names:?}");
        }
    }
}
