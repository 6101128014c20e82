//! Replaceable program files, for tests of upgrades.

use crate::support::BINARY;
use proxy_testkit::{Proxyd, Upgrade};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

#[track_caller]
pub(crate) fn upgrade(proxyd: &mut Proxyd) {
    assert_eq!(proxyd.upgrade(), Upgrade::Done);
}

/// Returns the reason for a failed upgrade.
#[track_caller]
pub(crate) fn failed_upgrade(proxyd: &mut Proxyd) -> String {
    match proxyd.upgrade() {
        Upgrade::Failed(reason) => reason,
        Upgrade::Done => panic!("the upgrade succeeded"),
    }
}

/// A folder with a copy of `proxyd`.
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

    /// Replaces the program by a script, atomically.
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
