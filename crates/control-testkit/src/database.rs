//! An empty database of each kind, so that one test runs on both.

use crate::postgres::Postgres;
use std::sync::OnceLock;
use tempfile::TempDir;

/// An empty database. A file is removed when this is dropped; a server's ends with the test.
#[derive(Debug)]
pub struct Database {
    /// `sqlite` or `postgres`.
    pub kind: &'static str,
    /// Value of `--database`.
    pub url: String,
    _folder: Option<TempDir>,
}

/// An empty SQLite database and an empty PostgreSQL database.
///
/// # Panics
///
/// If PostgreSQL is not installed, or does not start.
pub fn databases() -> Vec<Database> {
    vec![Database::sqlite(), Database::postgres()]
}

impl Database {
    /// An empty file.
    ///
    /// # Panics
    ///
    /// If temporary files cannot be created.
    #[expect(clippy::expect_used, reason = "a test may stop")]
    pub fn sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder is created");
        Self {
            kind: "sqlite",
            url: format!(
                "sqlite://{}?mode=rwc",
                folder.path().join("test.db").display()
            ),
            _folder: Some(folder),
        }
    }

    /// An empty database of the one server that this process shares.
    ///
    /// # Panics
    ///
    /// If PostgreSQL is not installed, or does not start.
    pub fn postgres() -> Self {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        Self {
            kind: "postgres",
            url: SERVER.get_or_init(Postgres::start).create_database(),
            _folder: None,
        }
    }
}
