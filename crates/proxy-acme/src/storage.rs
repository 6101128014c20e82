//! Files of a certificate and its account.

use crate::error::AcmeError;
use crate::settings::AcmeSettings;
use aws_lc_rs::digest::{SHA256, digest};
use rustix::fs::{FlockOperation, flock};
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;
/// Bytes that must be writable before an order: a certificate with its key is shorter.
const ROOM_BYTES: usize = 64 * 1024;
/// Number of digest bytes in a file name, as two digits each.
const DIGEST_BYTES: usize = 4;

/// Files of a certificate and its account, in a folder for the authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    root: PathBuf,
    folder: PathBuf,
    name: String,
}

/// Exclusive right of a process to contact the authority. Released on drop, or when the process
/// ends.
#[derive(Debug)]
pub(crate) struct StorageLock {
    _file: File,
}

impl Storage {
    /// Determines the paths for these settings, without accessing files.
    pub fn new(settings: &AcmeSettings) -> Self {
        let (hosts, directory) = (&settings.hosts, &settings.directory);
        let storage = &settings.storage;
        let authority = directory.strip_prefix("https://").unwrap_or(directory);
        let authority = authority.split('/').next().unwrap_or_default();
        let authority = format!("{}-{}", file_name(authority), short_digest(directory));
        let mut sorted: Vec<&str> = hosts.iter().map(String::as_str).collect();
        sorted.sort_unstable();
        let first = hosts.first().map(String::as_str).unwrap_or_default();
        Self {
            root: storage.clone(),
            folder: storage.join(authority),
            name: format!("{}-{}", file_name(first), short_digest(&sorted.join("\n"))),
        }
    }

    /// PEM file with private key and chain; may be missing.
    pub fn certificate_file(&self) -> PathBuf {
        let name = format!("{}.pem", self.name);
        self.certificates().join(name)
    }

    /// JSON file with the account and its key.
    pub(crate) fn account_file(&self) -> PathBuf {
        self.folder.join("account.json")
    }

    fn certificates(&self) -> PathBuf {
        self.folder.join("certificates")
    }

    /// Reads key and chain; `None` if they are missing. Blocking.
    pub(crate) fn read_certificate(&self) -> Result<Option<Vec<u8>>, AcmeError> {
        read(&self.certificate_file())
    }

    /// Reads the account; `None` if it is missing. Blocking.
    pub(crate) fn read_account(&self) -> Result<Option<Vec<u8>>, AcmeError> {
        read(&self.account_file())
    }

    /// Replaces key and chain. Blocking.
    pub(crate) fn write_certificate(&self, pem: &[u8]) -> Result<(), AcmeError> {
        self.make_folders()?;
        write(&self.certificate_file(), pem)
    }

    /// Checks that a certificate could be stored: an order with a lost certificate counts against
    /// the authority's limits. Blocking.
    pub(crate) fn check_room(&self) -> Result<(), AcmeError> {
        self.make_folders()?;
        let path = self.certificate_file();
        let fault = failed(&path);
        let temporary = write_temporary(&path, &vec![0; ROOM_BYTES]).map_err(&fault)?;
        fs::remove_file(temporary).map_err(fault)
    }

    /// Renames the certificate's file to `.bad`; returns that name. Blocking.
    pub(crate) fn set_aside_certificate(&self) -> Result<PathBuf, AcmeError> {
        let path = self.certificate_file();
        let aside = path.with_extension("bad");
        fs::rename(&path, &aside).map_err(failed(&path))?;
        Ok(aside)
    }

    /// Replaces the account. Blocking.
    pub(crate) fn write_account(&self, account: &[u8]) -> Result<(), AcmeError> {
        self.make_folders()?;
        write(&self.account_file(), account)
    }

    /// Acquires the lock of the authority's folder; `None` while another process or task holds it.
    /// Blocks only for the disk.
    pub(crate) fn lock(&self) -> Result<Option<StorageLock>, AcmeError> {
        self.make_folders()?;
        let path = self.folder.join("lock");
        let fault = failed(&path);
        let mut options = OpenOptions::new();
        let options = options.write(true).create(true).truncate(false);
        let file = options.mode(FILE_MODE).open(&path).map_err(&fault)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(StorageLock { _file: file })),
            Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
            Err(error) => Err(fault(error.into())),
        }
    }

    fn make_folders(&self) -> Result<(), AcmeError> {
        for folder in [&self.root, &self.folder, &self.certificates()] {
            let made = DirBuilder::new()
                .recursive(true)
                .mode(FOLDER_MODE)
                .create(folder);
            made.map_err(failed(folder))?;
        }
        Ok(())
    }
}

/// Reads a file; `None` if it is missing.
fn read(path: &Path) -> Result<Option<Vec<u8>>, AcmeError> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path)(error)),
    }
}

/// Replaces a file atomically: readers find the old or the new contents, even after a crash.
fn write(path: &Path, bytes: &[u8]) -> Result<(), AcmeError> {
    let written = write_temporary(path, bytes);
    let renamed = written.and_then(|temporary| fs::rename(temporary, path));
    let kept = renamed.and_then(|()| match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    });
    kept.map_err(failed(path))
}

/// Writes the file that replaces `path` by a rename; returns its name.
fn write_temporary(path: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let temporary = path.with_extension("new");
    // A file left by a crash may have another mode.
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut options = OpenOptions::new();
    let options = options.write(true).create_new(true).mode(FILE_MODE);
    let written = options.open(&temporary).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if written.is_err() {
        // Leaves no part on a full disk.
        fs::remove_file(&temporary).unwrap_or_default();
    }
    written.map(|()| temporary)
}

fn failed(path: &Path) -> impl Fn(io::Error) -> AcmeError {
    let path = path.to_owned();
    move |error| AcmeError::Storage {
        path: path.clone(),
        error,
    }
}

/// Part of a file name for a host, with `_` for a wildcard's `*`.
fn file_name(host: &str) -> String {
    let safe = |c: char| match c {
        'a'..='z' | '0'..='9' | '.' | '-' => c,
        'A'..='Z' => c.to_ascii_lowercase(),
        _ => '_',
    };
    host.chars().map(safe).collect()
}

fn short_digest(text: &str) -> String {
    let digest = digest(&SHA256, text.as_bytes());
    let mut text = String::with_capacity(2 * DIGEST_BYTES);
    for byte in digest.as_ref().iter().take(DIGEST_BYTES) {
        // Writing to a String never fails.
        write!(text, "{byte:02x}").unwrap_or_default();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Challenge;
    use proxy_model::AcmeKeyType;
    use std::os::unix::fs::PermissionsExt;

    fn storage(folder: &Path, hosts: &[&str]) -> Storage {
        Storage::new(&AcmeSettings {
            hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
            directory: "https://ca.example/dir".to_owned(),
            directory_ca_file: None,
            email: "a@b.example".to_owned(),
            challenge: Challenge::Http01,
            external_account: None,
            key_type: AcmeKeyType::EcdsaP256,
            storage: folder.join("acme"),
            user_agent: "test".to_owned(),
        })
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn folders_and_files_are_readable_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let storage = storage(folder.path(), &["a.example"]);
        storage.write_account(b"account").unwrap();
        let left = storage.certificate_file().with_extension("new");
        fs::write(&left, "left by a crash").unwrap();
        fs::set_permissions(&left, fs::Permissions::from_mode(0o644)).unwrap();
        storage.write_certificate(b"certificate").unwrap();

        assert_eq!(mode(&folder.path().join("acme")), 0o700);
        assert_eq!(mode(&storage.folder), 0o700);
        assert_eq!(mode(&storage.certificates()), 0o700);
        assert_eq!(mode(&storage.account_file()), 0o600);
        assert_eq!(mode(&storage.certificate_file()), 0o600);
        assert_eq!(storage.read_certificate().unwrap().unwrap(), b"certificate");
        assert!(!left.exists());
        storage.check_room().unwrap();
        assert!(!left.exists());
        assert_eq!(storage.read_certificate().unwrap().unwrap(), b"certificate");
        let aside = storage.set_aside_certificate().unwrap();
        assert_eq!(storage.read_certificate().unwrap(), None);
        assert_eq!(
            (mode(&aside), fs::read(&aside).unwrap()),
            (0o600, b"certificate".to_vec())
        );
    }

    #[test]
    fn one_task_at_a_time_has_the_lock() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            storage(folder.path(), &["a.example"]),
            storage(folder.path(), &["b.example"]),
        );
        let lock = one.lock().unwrap();
        assert!(lock.is_some());
        assert!(other.lock().unwrap().is_none());
        drop(lock);
        assert!(other.lock().unwrap().is_some());
    }

    #[test]
    fn the_order_of_hosts_does_not_matter_but_for_the_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = |hosts| storage(folder.path(), hosts).certificate_file();
        let digest = |path: PathBuf| {
            path.to_string_lossy()
                .rsplit_once('-')
                .unwrap()
                .1
                .to_owned()
        };
        let wildcard = file(&["*.a.example", "a.example"]);
        assert_eq!(
            digest(wildcard.clone()),
            digest(file(&["a.example", "*.a.example"]))
        );
        assert_ne!(digest(wildcard.clone()), digest(file(&["a.example"])));
        assert!(wildcard.to_string_lossy().contains("/_.a.example-"));
    }
}
