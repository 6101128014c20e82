//! The public keys, read again when their file has changed.

use arc_swap::ArcSwap;
use jsonwebtoken::jwk::JwkSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A key set and the file that it is read from.
pub(crate) struct Keys {
    path: PathBuf,
    loaded: ArcSwap<Loaded>,
}

struct Loaded {
    modified: SystemTime,
    set: Arc<JwkSet>,
}

impl Keys {
    /// Reads the file.
    pub(crate) fn load(path: PathBuf) -> io::Result<Self> {
        let loaded = ArcSwap::from_pointee(read(&path)?);
        Ok(Self { path, loaded })
    }

    /// The keys of the file; those before a change that cannot be read.
    pub(crate) fn current(&self) -> Arc<JwkSet> {
        let loaded = self.loaded.load();
        let modified = fs::metadata(&self.path).and_then(|file| file.modified());
        if modified.is_ok_and(|modified| modified != loaded.modified)
            && let Ok(changed) = read(&self.path)
        {
            let set = Arc::clone(&changed.set);
            self.loaded.store(Arc::new(changed));
            return set;
        }
        Arc::clone(&loaded.set)
    }
}

fn read(path: &Path) -> io::Result<Loaded> {
    let modified = fs::metadata(path)?.modified()?;
    let set = serde_json::from_slice(&fs::read(path)?)?;
    Ok(Loaded {
        modified,
        set: Arc::new(set),
    })
}
