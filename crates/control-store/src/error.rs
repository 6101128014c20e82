//! Errors of the store.

use sqlx::migrate::MigrateError;

/// PostgreSQL's `serialization_failure` and `deadlock_detected`.
const CONFLICT_SQLSTATES: &[&str] = &["40001", "40P01"];

/// PostgreSQL's error classes for lost connections, insufficient resources such as a full disk,
/// operator intervention (shutdown, crash, start) and system errors, and
/// `read_only_sql_transaction`. <https://www.postgresql.org/docs/current/errcodes-appendix.html>
const UNAVAILABLE_SQLSTATE_PREFIXES: &[&str] = &["08", "53", "57P", "58", "25006"];
/// SQLite's `BUSY`, `READONLY`, `IOERR`, `FULL` and `CANTOPEN`.
/// <https://www.sqlite.org/rescode.html>
const UNAVAILABLE_SQLITE_CODES: &[u32] = &[5, 8, 10, 13, 14];
/// SQLite's `READONLY`.
const SQLITE_READONLY: u32 = 8;
/// SQLite's `CORRUPT`.
const SQLITE_CORRUPT: u32 = 11;

/// Error of the store.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The row was changed or deleted since it was read, or this transaction was rolled back to
    /// resolve a deadlock.
    #[error("the row was changed or deleted meanwhile")]
    Stale,
    /// A unique value exists already.
    #[error("a unique value exists already")]
    Conflict,
    /// A row refers to a missing row, or another row refers to it.
    #[error("a referenced row is missing, or the row is still referenced")]
    Reference,
    /// A column has a value that this program never writes.
    #[error("column {0} cannot be read")]
    Corrupt(&'static str),
    /// The schema is newer than this program.
    #[error(
        "its schema {0} is newer than this version knows: start the version that wrote it, or restore the backup from \
         before"
    )]
    Newer(i64),
    /// The schema is older than this program: its migrations have not run.
    #[error(
        "its schema {0} is older than this version needs: start this version first, or use the one that wrote it"
    )]
    Older(i64),
    /// A page of the SQLite file is corrupt.
    #[error("the database file is damaged ({0}): restore the newest backup")]
    Damaged(String),
    /// The database accepts no writes: its disk is full or read-only.
    #[error("the database accepts no writes: its disk is full or read-only")]
    Unwritable,
    /// A migration failed.
    #[error("migration failed")]
    Migration(#[source] MigrateError),
    /// The database could not be reached in time.
    #[error("database unavailable")]
    Unavailable(#[source] sqlx::Error),
    /// The database refuses the statement, or cannot be reached.
    #[error("database failed")]
    Database(#[source] sqlx::Error),
}

impl From<MigrateError> for StoreError {
    fn from(error: MigrateError) -> Self {
        if let MigrateError::VersionMissing(version) = error {
            return Self::Newer(version);
        }
        Self::Migration(error)
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        if let Some(database) = error.as_database_error() {
            if database.is_unique_violation() {
                return Self::Conflict;
            }
            if database.is_foreign_key_violation() {
                return Self::Reference;
            }
            if database
                .code()
                .is_some_and(|code| CONFLICT_SQLSTATES.contains(&&*code))
            {
                return Self::Stale;
            }
            let code = database.code().unwrap_or_default();
            match sqlite_code(&code) {
                Some(SQLITE_CORRUPT) => return Self::Damaged(database.message().to_owned()),
                Some(code) if UNAVAILABLE_SQLITE_CODES.contains(&code) => {
                    return Self::Unavailable(error);
                }
                None if UNAVAILABLE_SQLSTATE_PREFIXES
                    .iter()
                    .any(|class| code.starts_with(class)) =>
                {
                    return Self::Unavailable(error);
                }
                Some(_) | None => {}
            }
        }
        let is_unavailable = matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
        );
        if is_unavailable {
            return Self::Unavailable(error);
        }
        Self::Database(error)
    }
}

/// Returns true if SQLite opened the file for reading alone.
pub(crate) fn is_read_only(error: &sqlx::Error) -> bool {
    let Some(database) = error.as_database_error() else {
        return false;
    };
    let code = database.code().unwrap_or_default();
    sqlite_code(&code) == Some(SQLITE_READONLY)
}

/// Parses SQLite's primary code. PostgreSQL's codes have five characters and are never numbers this
/// small.
fn sqlite_code(code: &str) -> Option<u32> {
    let extended: Option<u32> = code.parse().ok().filter(|_| code.len() < 5);
    extended.map(|code| code & 0xff)
}
