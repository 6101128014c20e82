//! Why the store did not do it.

/// PostgreSQL's `serialization_failure` and `deadlock_detected`.
const GAVE_WAY: &[&str] = &["40001", "40P01"];

/// PostgreSQL's classes of a lost connection and of an operator's intervention (a shutdown, a crash,
/// a start), and `too_many_connections`.
/// <https://www.postgresql.org/docs/current/errcodes-appendix.html>
const AWAY: &[&str] = &["08", "57P", "53300"];

/// Why the store did not do it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The row has a newer version than the one that was read, or is gone; or two transactions
    /// waited for each other, and this one gave way.
    #[error("changed meanwhile")]
    Stale,
    /// A unique value exists already.
    #[error("conflicts with what exists")]
    Conflict,
    /// A row refers to one that does not exist, or is referred to.
    #[error("refers to what does not exist, or is referred to")]
    Reference,
    /// A column holds what no writer put there.
    #[error("column {0} cannot be read")]
    Corrupt(&'static str),
    /// The schema could not be brought up to date.
    #[error("migration failed")]
    Migration(#[from] sqlx::migrate::MigrateError),
    /// The database could not be reached in time.
    #[error("database unavailable")]
    Unavailable(#[source] sqlx::Error),
    /// The database refused.
    #[error("database failed")]
    Database(#[source] sqlx::Error),
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
                .is_some_and(|code| GAVE_WAY.contains(&&*code))
            {
                return Self::Stale;
            }
            let code = database.code().unwrap_or_default();
            if AWAY.iter().any(|class| code.starts_with(class)) {
                return Self::Unavailable(error);
            }
        }
        let away = matches!(
            error,
            sqlx::Error::Io(_)
                | sqlx::Error::PoolTimedOut
                | sqlx::Error::PoolClosed
                | sqlx::Error::WorkerCrashed
        );
        if away {
            return Self::Unavailable(error);
        }
        Self::Database(error)
    }
}
