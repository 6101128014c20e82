//! A binary that can be replaced, and what becomes of an upgrade to it.

use crate::support::BINARY;
use proxy_testkit::{Proxyd, Upgrade};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

#[track_caller]
pub(crate) fn upgrade(proxyd: &mut Proxyd) {
    assert_eq!(proxyd.upgrade(), Upgrade::Done);
}

/// Why nobody took over.
#[track_caller]
pub(crate) fn refused(proxyd: &mut Proxyd) -> String {
    match proxyd.upgrade() {
        Upgrade::Failed(reason) => reason,
        Upgrade::Done => panic!("it took over"),
    }
}

/// A folder with a `proxyd` in it that can be replaced.
pub(crate) struct Installed(tempfile::TempDir);

impl Installed {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        symlink(BINARY, folder.path().join("proxyd")).unwrap();
        Self(folder)
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("proxyd")
    }

    /// Puts this script in the program's place, whole at once.
    pub(crate) fn replace(&self, script: &str) {
        let new = self.0.path().join("new");
        fs::write(&new, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755)).unwrap();
        fs::rename(new, self.path()).unwrap();
    }

    pub(crate) fn restore(&self) {
        let new = self.0.path().join("new");
        symlink(BINARY, &new).unwrap();
        fs::rename(new, self.path()).unwrap();
    }
}
