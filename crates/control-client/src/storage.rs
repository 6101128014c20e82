//! Data folder of a node: identity, state, archives, and files of active bundles.
//!
//! Each file is written under a temporary name, synced and renamed, so that a reader finds either
//! the old or the new file, complete. An unreadable file is renamed, and the node continues without
//! it.

use crate::bundle::{Bundle, OwnVersions};
use crate::error::ClientError;
use crate::state::{Identity, PersistedState};
use control_bundle::{MAX_ARCHIVE_BYTES, verify_order};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const IDENTITY: &str = "identity.json";
const STATE: &str = "state.json";
const ARCHIVES: &str = "bundles";
const ACTIVE: &str = "active";
const MAX_STATE_BYTES: u64 = 1024 * 1024;

/// Persistent storage of a node.
#[derive(Debug)]
pub enum Storage {
    /// A folder on the disk.
    Folder {
        /// Path of the data folder.
        path: PathBuf,
        /// Number of bundles that this process has unpacked.
        unpacked: u32,
    },
    /// Stores nothing, for simulated nodes.
    Memory,
}

/// Stored contents, read at the start.
#[derive(Debug, Default)]
pub struct StoredState {
    /// Identity of the node; `None` before its enrolment.
    pub identity: Option<Identity>,
    /// Persisted state.
    pub state: PersistedState,
    /// Last good bundle; `None` if its archive is missing or damaged.
    pub bundle: Option<Bundle>,
}

impl Storage {
    /// Creates the folder, readable only by its owner, and deletes files that an earlier process
    /// unpacked.
    ///
    /// # Errors
    ///
    /// [`ClientError::Storage`] with the folder, if the file system refuses.
    pub fn open(path: &Path) -> Result<Self, ClientError> {
        let fault = |source| ClientError::Storage {
            folder: path.to_owned(),
            source,
        };
        for folder in [path.to_owned(), path.join(ARCHIVES), path.join(ACTIVE)] {
            make_folder(&folder).map_err(fault)?;
        }
        remove_unpacked(&path.join(ACTIVE), |owner| !is_alive(owner));
        Ok(Self::Folder {
            path: path.to_owned(),
            unpacked: 0,
        })
    }

    /// Reads the stored contents. A damaged file is renamed, and counts as missing.
    pub fn load(&self, versions: OwnVersions) -> StoredState {
        let Self::Folder { path, .. } = self else {
            return StoredState::default();
        };
        let identity: Option<Identity> = read_json(&path.join(IDENTITY));
        let mut state: PersistedState = read_json(&path.join(STATE)).unwrap_or_default();
        if identity.is_none() {
            // Trust and counter belong to the lost identity, and are invalid for the next one.
            state = PersistedState::default();
        }
        let bundle = last_good(path, &state, versions);
        StoredState {
            identity,
            state,
            bundle,
        }
    }

    /// Stores the identity.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the disk fails.
    pub fn save_identity(&self, identity: &Identity) -> io::Result<()> {
        match self {
            Self::Folder { path, .. } => write_json(&path.join(IDENTITY), identity),
            Self::Memory => Ok(()),
        }
    }

    /// Stores the state.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the disk fails.
    pub fn save_state(&self, state: &PersistedState) -> io::Result<()> {
        match self {
            Self::Folder { path, .. } => write_json(&path.join(STATE), state),
            Self::Memory => Ok(()),
        }
    }

    /// The stored archive with this digest; `None` if it is missing or damaged.
    pub fn archive(&self, digest: &str) -> Option<Vec<u8>> {
        let Self::Folder { path, .. } = self else {
            return None;
        };
        let kept = path.join(ARCHIVES).join(digest);
        let bytes = read_bounded(&kept, MAX_ARCHIVE_BYTES as u64).ok()?;
        (control_bundle::digest(&bytes) == digest).then_some(bytes)
    }

    /// Stores the archive and unpacks its files; returns the new folder.
    ///
    /// # Errors
    ///
    /// [`io::Error`] if the disk fails; files in use stay unchanged.
    pub fn stage(&mut self, bundle: &Bundle) -> io::Result<PathBuf> {
        let Self::Folder { path, unpacked } = self else {
            return Ok(PathBuf::new());
        };
        let archive = path.join(ARCHIVES).join(&bundle.order.digest);
        write(&archive, &bundle.archive)?;
        *unpacked = unpacked.wrapping_add(1);
        let name = format!("{}-{unpacked}", std::process::id());
        let folder = path.join(ACTIVE).join(name);
        let unpacking = unpack(&folder, bundle);
        if unpacking.is_err() {
            // Deletes a partially unpacked folder, which would only occupy disk space.
            drop(fs::remove_dir_all(&folder));
        }
        unpacking.map(|()| folder)
    }

    /// Deletes archives except those of `states`, and folders of this process except `in_use`:
    /// requests in flight may still read the previous bundle's folder.
    pub fn clean(&self, states: &[Option<&PersistedState>], in_use: &[PathBuf]) {
        let Self::Folder { path, .. } = self else {
            return;
        };
        let orders = states
            .iter()
            .flatten()
            .flat_map(|state| [state.last_good.as_ref(), state.trial.as_ref()])
            .flatten();
        let wanted: Vec<&str> = orders.map(|order| order.digest.as_str()).collect();
        for entry in entries(&path.join(ARCHIVES)) {
            let name = entry.file_name().and_then(|name| name.to_str());
            if name.is_none_or(|name| !wanted.contains(&name)) {
                drop(fs::remove_file(entry));
            }
        }
        let own = std::process::id();
        remove_unpacked_except(&path.join(ACTIVE), own, in_use);
    }
}

fn last_good(path: &Path, state: &PersistedState, versions: OwnVersions) -> Option<Bundle> {
    let order = state.last_good.clone()?;
    let key = state.trust.as_ref().and_then(|trust| trust.key(order.kid));
    if key.is_some_and(|key| verify_order(&order, &key).is_err()) {
        tracing::warn!("the order of the last good bundle is not signed by its key");
        return None;
    }
    let archive = path.join(ARCHIVES).join(&order.digest);
    let read = read_bounded(&archive, MAX_ARCHIVE_BYTES as u64);
    let opened = read.map_err(|error| error.to_string()).and_then(|bytes| {
        Bundle::open(order, bytes.into(), versions).map_err(|error| error.to_string())
    });
    opened
        .inspect_err(|error| tracing::warn!(error, "the last good bundle cannot be used"))
        .ok()
}

fn unpack(folder: &Path, bundle: &Bundle) -> io::Result<()> {
    make_folder(folder)?;
    for (name, bytes) in &bundle.files {
        // Names in an opened bundle are relative and stay within the folder.
        let file = folder.join(name);
        if let Some(parent) = file.parent() {
            make_folder(parent)?;
        }
        let mut options = OpenOptions::new();
        let mut file = options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?;
        file.write_all(bytes)?;
    }
    Ok(())
}

pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Reads a JSON file. `None` if it is missing, or cannot be parsed and was renamed.
fn read_json<T: DeserializeOwned>(path: &Path) -> Option<T> {
    let read = read_bounded(path, MAX_STATE_BYTES);
    let fault = match read {
        Ok(bytes) => match serde_json::from_slice(&bytes) {
            Ok(value) => return Some(value),
            Err(error) => error.to_string(),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => error.to_string(),
    };
    tracing::error!(file = %path.display(), fault, "damaged; the node goes on without it");
    // If the rename fails, the next write replaces the file.
    drop(fs::rename(path, path.with_extension("damaged")));
    None
}

pub(crate) fn read_bounded(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    Ok(proxy_setting_files::read(path, most)?)
}

fn write_json(path: &Path, value: &impl Serialize) -> io::Result<()> {
    write(path, &serde_json::to_vec(value)?)
}

pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new_file = path.with_extension("new");
    let written = write_synced(&new_file, bytes).and_then(|()| fs::rename(&new_file, path));
    if written.is_err() {
        // Deletes a partial file, which would only occupy disk space.
        drop(fs::remove_file(&new_file));
        return written;
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    File::open(folder)?.sync_all()
}

fn write_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub(crate) fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let read = fs::read_dir(folder).into_iter().flatten();
    read.filter_map(|entry| Some(entry.ok()?.path()))
}

/// Process that unpacked a folder, from its name.
fn owner(folder: &Path) -> Option<u32> {
    let name = folder.file_name()?.to_str()?;
    name.split_once('-')?.0.parse().ok()
}

fn is_alive(process: u32) -> bool {
    process == std::process::id() || Path::new(&format!("/proc/{process}")).exists()
}

fn remove_unpacked(folder: &Path, is_surplus: impl Fn(u32) -> bool) {
    for entry in entries(folder) {
        if owner(&entry).is_none_or(&is_surplus) {
            drop(fs::remove_dir_all(entry));
        }
    }
}

fn remove_unpacked_except(folder: &Path, process: u32, in_use: &[PathBuf]) {
    for entry in entries(folder) {
        if owner(&entry) == Some(process) && !in_use.contains(&entry) {
            drop(fs::remove_dir_all(entry));
        }
    }
}
