//! The file with the keys that encrypt secrets: one per line, in hexadecimal, the current one
//! first.

use control_app::Environment;
use control_auth::{MasterKey, Sealer};
use std::collections::BTreeSet;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

type Failure = Box<dyn Error>;

/// Permissions that the file must not have. The group may read, for mounted secrets of an
/// orchestrator.
const FORBIDDEN_MODE: u32 = 0o037;

/// The key file. If it is lost, the secrets in the database cannot be decrypted.
#[derive(Clone, Debug)]
pub(crate) struct KeyFile(PathBuf);

/// Use of secrets by a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Secrets {
    /// Secrets are decrypted, so each needs its key.
    Opened,
    /// Secrets stay encrypted, so the key file may be missing.
    Untouched,
}

/// Metadata of a file, which differ if the file was changed or replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    inode: u64,
    size_bytes: u64,
    modified_secs: i64,
    modified_nanos: i64,
}

impl KeyFile {
    /// The file may be missing.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self(path)
    }

    /// Returns the keys for a command. `used` are the IDs of the keys that the database needs.
    /// A missing file is created only while the database has no secrets: a new key could not
    /// decrypt them.
    pub(crate) fn sealer(
        &self,
        environment: &Environment,
        secrets: Secrets,
        used: &BTreeSet<String>,
    ) -> Result<Sealer, Failure> {
        if secrets == Secrets::Untouched && self.stamp().is_none() {
            let key = MasterKey::new(&environment.random::<32>())?;
            return Ok(Sealer::new(vec![key])?);
        }
        self.check(used)?;
        self.open(environment)
    }

    /// Checks that the file contains all keys in `used`.
    pub(crate) fn check(&self, used: &BTreeSet<String>) -> Result<(), Failure> {
        if used.is_empty() {
            return Ok(());
        }
        if self.stamp().is_none() {
            let remedy = "the secrets of the database need it: restore it from the backup";
            return Err(format!("the file is missing; {remedy}").into());
        }
        let sealer = self.read()?;
        let missing = used.iter().find(|id| !sealer.holds(id));
        missing.map_or(Ok(()), |id| {
            let remedy = "restore the file that belongs to this database";
            Err(format!("lacks the key {id}, which secrets of the database need; {remedy}").into())
        })
    }

    /// Reads the keys, or creates a file with a new one. Writes nothing if the file exists: its
    /// folder may be read-only, or the disk full.
    fn open(&self, environment: &Environment) -> Result<Sealer, Failure> {
        if self.stamp().is_some() {
            return self.read();
        }
        let key = hex(&environment.random::<32>());
        let new_file = self.write_new_file(&[key])?;
        // Linking is atomic, and fails if the file exists.
        let linked = fs::hard_link(&new_file, &self.0);
        fs::remove_file(&new_file)?;
        match linked {
            Ok(()) => self.sync_folder()?,
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
        self.read()
    }

    pub(crate) fn read(&self) -> Result<Sealer, Failure> {
        let keys = self.lines()?;
        let keys = keys.iter().map(|line| Ok(MasterKey::new(&bytes(line)?)?));
        let keys: Result<Vec<MasterKey>, Failure> = keys.collect();
        Ok(Sealer::new(keys?)?)
    }

    /// Adds a new current key before the older ones, atomically and durably.
    pub(crate) fn add(&self, environment: &Environment) -> Result<(), Failure> {
        let mut lines = self.lines()?;
        lines.insert(0, hex(&environment.random::<32>()));
        self.replace(&lines)
    }

    /// Removes all keys for which `needed` is false, except the current one. Returns their number.
    pub(crate) fn prune(&self, needed: impl Fn(&str) -> bool) -> Result<usize, Failure> {
        let lines = self.lines()?;
        let mut kept = Vec::new();
        for (position, line) in lines.iter().enumerate() {
            if position == 0 || needed(MasterKey::new(&bytes(line)?)?.id()) {
                kept.push(line.clone());
            }
        }
        let dropped = lines.len() - kept.len();
        if dropped > 0 {
            self.replace(&kept)?;
        }
        Ok(dropped)
    }

    /// Returns the file's current metadata; `None` if it is missing.
    pub(crate) fn stamp(&self) -> Option<Stamp> {
        let metadata = fs::metadata(&self.0).ok()?;
        Some(Stamp {
            inode: metadata.ino(),
            size_bytes: metadata.size(),
            modified_secs: metadata.mtime(),
            modified_nanos: metadata.mtime_nsec(),
        })
    }

    /// Path for messages.
    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn lines(&self) -> Result<Vec<String>, Failure> {
        let mut file = File::open(&self.0)?;
        let mode = file.metadata()?.mode() & 0o777;
        if mode & FORBIDDEN_MODE != 0 {
            let remedy =
                "it opens every secret of the database: chmod 600, or 640 for a dedicated group";
            return Err(format!("is open to others, with mode {mode:03o}; {remedy}").into());
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(lines.map(str::to_owned).collect())
    }

    fn replace(&self, lines: &[String]) -> Result<(), Failure> {
        fs::rename(self.write_new_file(lines)?, &self.0)?;
        Ok(self.sync_folder()?)
    }

    /// Writes a temporary file in the same folder, and syncs it before it is linked.
    fn write_new_file(&self, lines: &[String]) -> Result<PathBuf, io::Error> {
        let mut name = self.0.clone().into_os_string();
        name.push(format!(".{}", std::process::id()));
        let new_file = PathBuf::from(name);
        match fs::remove_file(&new_file) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&new_file)?;
        file.write_all(lines.join("\n").as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()?;
        Ok(new_file)
    }

    fn sync_folder(&self) -> Result<(), io::Error> {
        let folder = self.0.parent().filter(|folder| *folder != Path::new(""));
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

fn bytes(hex: &str) -> Result<Vec<u8>, &'static str> {
    let wrong = "the key file has a line that is not hexadecimal";
    let (pairs, rest) = hex.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return Err(wrong);
    }
    let digit = |byte: u8| char::from(byte).to_digit(16);
    let byte = |[high, low]: &[u8; 2]| u8::try_from(digit(*high)? * 16 + digit(*low)?).ok();
    pairs.iter().map(byte).collect::<Option<_>>().ok_or(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;

    const ENVIRONMENT: Environment = Environment {
        now: || Timestamp::UNIX_EPOCH,
        fill: |bytes| bytes.fill(7),
    };

    #[test]
    fn a_hexadecimal_key_survives_a_round_trip() {
        assert_eq!(bytes(&hex(&[0, 15, 255])), Ok(vec![0, 15, 255]));
        assert!(bytes("0g").is_err());
        assert!(bytes("123").is_err());
    }

    #[test]
    fn an_existing_file_is_opened_in_a_folder_that_takes_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("master.key");
        let file = KeyFile::new(path.clone());
        let first = file.open(&ENVIRONMENT).unwrap();
        // The temporary file cannot be created: a folder has its name.
        let taken = path.with_extension(format!("key.{}", std::process::id()));
        fs::create_dir_all(taken.join("inner")).unwrap();
        let again = file.open(&ENVIRONMENT).unwrap();
        assert_eq!(again.current(), first.current());
    }

    #[test]
    fn the_current_key_is_never_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let file = KeyFile::new(folder.path().join("master.key"));
        let first = file.open(&ENVIRONMENT).unwrap();
        assert_eq!(file.prune(|_| false).unwrap(), 0);
        let other = Environment {
            fill: |bytes| bytes.fill(8),
            ..ENVIRONMENT
        };
        let before = file.stamp();
        file.add(&other).unwrap();
        assert_ne!(file.stamp(), before);
        let second = file.open(&ENVIRONMENT).unwrap();
        assert_ne!(second.current(), first.current());
        let sealed = first.seal("row", [1; 12], b"secret").unwrap();
        assert!(second.open("row", &sealed).is_ok());
        assert_eq!(file.prune(|id| id == sealed.master_key).unwrap(), 0);
        assert_eq!(file.prune(|_| false).unwrap(), 1);
        assert!(file.read().unwrap().open("row", &sealed).is_err());
    }
}
