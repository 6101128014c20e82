//! The database: connections and transactions.

pub(crate) mod audit_event;
pub(crate) mod pool;
pub(crate) mod sqlite;

use crate::error::{StoreError, is_read_only};
use crate::row::number;
use crate::store::audit_event::AuditChange;
use crate::store::pool::{MAX_WAIT, pool_options};
use crate::store::sqlite::Sqlite;
use jiff::Timestamp;
use sqlx::any::install_default_drivers;
use sqlx::migrate::Migrator;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Row, query};
use std::cmp::Ordering::{Equal, Greater, Less};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

const MAX_POSTGRES_CONNECTIONS: u32 = 16;
/// Statements that empty tables which a backup must not contain: restored, they would revive
/// sessions that have ended since, and the links and attempts that lead to one.
const DELETES_FROM_BACKUP: [(&str, &str); 7] = [
    ("sessions", "DELETE FROM copy.sessions"),
    ("pending_sign_ins", "DELETE FROM copy.pending_sign_ins"),
    ("password_resets", "DELETE FROM copy.password_resets"),
    ("sign_in_attempts", "DELETE FROM copy.sign_in_attempts"),
    ("invitations", "DELETE FROM copy.invitations"),
    ("sign_in_tickets", "DELETE FROM copy.sign_in_tickets"),
    // Tokens and keys stay listed, so that operators see which ones to create again.
    (
        "enrolment_tokens",
        "UPDATE copy.enrolment_tokens
         SET revoked_at = CAST(strftime('%s', 'now') AS INTEGER) * 1000, version = version + 1
         WHERE revoked_at IS NULL",
    ),
];
/// Time limit of a ping: load balancers poll often, with short timeouts.
const MAX_PING: Duration = Duration::from_secs(2);

/// Number of connections to the database, by use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Connections free for a transaction.
    pub idle: u32,
    /// Connections in use.
    pub used: u32,
}

/// The database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    begin: &'static str,
    sqlite: Option<Sqlite>,
    rows_written: Arc<AtomicU64>,
    /// Set if a connection refused a write as read-only.
    has_read_only: Arc<AtomicBool>,
}

/// Reads and writes of one command. Rolled back when dropped without [`Transaction::commit`].
#[derive(Debug)]
pub struct Transaction {
    inner: Inner,
    /// Change for the next audit entry.
    pub(crate) change: AuditChange,
    rows_written: Arc<AtomicU64>,
    has_read_only: Arc<AtomicBool>,
}

#[derive(Debug)]
enum Inner {
    Write {
        transaction: sqlx::Transaction<'static, Any>,
        _writer: Option<OwnedSemaphorePermit>,
    },
    /// Reads without a transaction, which saves two statements; each statement sees the state
    /// committed at its time.
    Read(PoolConnection<Any>),
}

impl Store {
    /// Connects to `sqlite://FILE?mode=rwc` or `postgres://…`, and migrates the schema.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be reached, or a migration fails.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let store = Self::open_as_is(url).await?;
        MIGRATIONS.run(&store.pool).await?;
        Ok(store)
    }

    /// Connects to an existing database without migrating it. On SQLite, reads every page once, so
    /// that damage is reported at start and not by the first request that needs the page.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be reached, or is damaged.
    pub async fn open_as_is(url: &str) -> Result<Self, StoreError> {
        install_default_drivers();
        let is_sqlite = url.starts_with("sqlite:");
        if is_sqlite {
            // The pool would retry for half a minute if the file is not a database.
            let mut connection = AnyConnection::connect(url).await?;
            let checked = query("PRAGMA quick_check(1)").fetch_one(&mut connection);
            let fault: String = checked.await?.try_get(0)?;
            if fault != "ok" {
                return Err(StoreError::Damaged(fault));
            }
            connection.close().await?;
        }
        let options = if is_sqlite {
            pool_options(sqlite::MAX_CONNECTIONS, sqlite::SETUP)
        } else {
            pool_options(MAX_POSTGRES_CONNECTIONS, "")
        };
        let pool = match options.connect(url).await {
            // The pool retries until its timeout and drops the cause; a separate attempt reports
            // it.
            Err(sqlx::Error::PoolTimedOut) => {
                let tried = AnyConnection::connect(url).await;
                return Err(tried.err().unwrap_or(sqlx::Error::PoolTimedOut).into());
            }
            pool => pool?,
        };
        // SQLite has one writer. Taking its lock at the start avoids a failure half-way, when a
        // transaction first reads and then writes.
        let begin = if is_sqlite {
            "BEGIN IMMEDIATE"
        } else {
            "BEGIN"
        };
        let rows_written = Arc::default();
        let sqlite = if is_sqlite {
            Some(Sqlite::start(url, &pool, &rows_written).await?)
        } else {
            None
        };
        Ok(Self {
            pool,
            begin,
            sqlite,
            rows_written,
            has_read_only: Arc::default(),
        })
    }

    /// Checks that this program and the database have the same schema.
    ///
    /// # Errors
    ///
    /// [`StoreError::Newer`] or [`StoreError::Older`] if the schemas differ.
    pub async fn check_schema(&self) -> Result<(), StoreError> {
        let newest =
            "SELECT CAST(COALESCE(MAX(version), 0) AS BIGINT) AS version FROM _sqlx_migrations";
        let row = query(newest).fetch_one(&self.pool).await?;
        let found = number(&row, "version")?;
        let known = MIGRATIONS.iter().map(|migration| migration.version).max();
        match found.cmp(&known.unwrap_or_default()) {
            Less => Err(StoreError::Older(found)),
            Equal => Ok(()),
            Greater => Err(StoreError::Newer(found)),
        }
    }

    /// Begins a transaction that writes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no connection is free in 10 seconds.
    pub async fn begin(&self) -> Result<Transaction, StoreError> {
        self.begin_in(&self.pool).await
    }

    /// Begins a transaction that writes; on SQLite its commit does not wait for the disk. The
    /// commit survives the end of this process, but a power failure may lose the last second or
    /// two. A later commit of [`Store::begin`] flushes it.
    ///
    /// On PostgreSQL the commit waits for the disk: an asynchronous one could be lost with the
    /// server's process.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no connection is free in 10 seconds.
    pub async fn begin_unsynced(&self) -> Result<Transaction, StoreError> {
        let unsynced = self.sqlite.as_ref().map(|sqlite| &sqlite.unsynced);
        self.begin_in(unsynced.unwrap_or(&self.pool)).await
    }

    async fn begin_in(&self, pool: &AnyPool) -> Result<Transaction, StoreError> {
        let writer = match &self.sqlite {
            Some(sqlite) => {
                let turn = timeout(MAX_WAIT, Arc::clone(&sqlite.writer).acquire_owned()).await;
                let turn = turn.map_err(|_| sqlx::Error::PoolTimedOut)?;
                Some(turn.map_err(|_| sqlx::Error::PoolClosed)?)
            }
            None => None,
        };
        if self.has_read_only.swap(false, Ordering::Relaxed) {
            self.close_idle().await;
        }
        let begun = pool.begin_with(self.begin).await;
        let inner = Inner::Write {
            transaction: begun.map_err(|error| noted(error, &self.has_read_only))?,
            _writer: writer,
        };
        Ok(self.transaction(inner))
    }

    /// Begins a series of reads; each statement sees the state committed at its time.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no connection is free in 10 seconds.
    pub async fn read(&self) -> Result<Transaction, StoreError> {
        let inner = Inner::Read(self.pool.acquire().await?);
        Ok(self.transaction(inner))
    }

    fn transaction(&self, inner: Inner) -> Transaction {
        Transaction {
            inner,
            change: AuditChange::default(),
            rows_written: Arc::clone(&self.rows_written),
            has_read_only: Arc::clone(&self.has_read_only),
        }
    }

    /// Closes idle connections, to open new ones. SQLite opens a file on a read-only file system for
    /// reading alone, and such a connection stays read-only after the file system is writable again.
    async fn close_idle(&self) {
        let unsynced = self.sqlite.as_ref().map(|sqlite| &sqlite.unsynced);
        for pool in unsynced.into_iter().chain([&self.pool]) {
            while let Some(connection) = pool.try_acquire() {
                drop(connection.close().await);
            }
        }
    }

    /// Number of rows inserted, updated or deleted by this process, including by rolled-back
    /// transactions.
    pub fn rows_written(&self) -> u64 {
        self.rows_written.load(Ordering::Relaxed)
    }

    /// Copies a SQLite database into a new file as a consistent snapshot, without sessions and
    /// single-use links.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file exists, cannot be written, or the database is not SQLite.
    pub async fn back_up(&self, file: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        query("VACUUM INTO $1")
            .bind(file)
            .execute(&mut *connection)
            .await?;
        query("ATTACH DATABASE $1 AS copy")
            .bind(file)
            .execute(&mut *connection)
            .await?;
        let mut emptied = Ok(());
        for (table, delete) in DELETES_FROM_BACKUP {
            // The backup is not migrated, so tables of newer schemas may be missing.
            let found =
                query("SELECT 1 FROM copy.sqlite_master WHERE type = 'table' AND name = $1")
                    .bind(table)
                    .fetch_optional(&mut *connection)
                    .await?;
            if found.is_some() {
                emptied = emptied.and(query(delete).execute(&mut *connection).await.map(drop));
            }
        }
        query("DETACH DATABASE copy")
            .execute(&mut *connection)
            .await?;
        Ok(emptied?)
    }

    /// Checks that the database answers within two seconds.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it does not answer in time.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let answer = timeout(MAX_PING, query("SELECT 1").execute(&self.pool)).await;
        answer.map_err(|_| sqlx::Error::PoolTimedOut)??;
        Ok(())
    }

    /// Number of connections to the database, by use.
    pub fn connections(&self) -> ConnectionCounts {
        let idle = u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX);
        let used = self.pool.size().saturating_sub(idle);
        ConnectionCounts { idle, used }
    }

    /// Waits for running transactions, and closes all connections.
    pub async fn close(&self) {
        if let Some(sqlite) = &self.sqlite {
            sqlite.unsynced.close().await;
        }
        self.pool.close().await;
        if let Some(sqlite) = &self.sqlite {
            sqlite.kept.close().await;
        }
    }
}

impl Transaction {
    /// Commits the transaction.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the commit fails; the transaction is then rolled back.
    pub async fn commit(self) -> Result<(), StoreError> {
        match self.inner {
            Inner::Write { transaction, .. } => Ok(transaction.commit().await?),
            Inner::Read(_) => Ok(()),
        }
    }

    /// Time of the database server; `None` on SQLite, which uses this machine's clock.
    pub async fn database_time(&mut self) -> Result<Option<Timestamp>, StoreError> {
        if self.is_sqlite() {
            return Ok(None);
        }
        let time =
            "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000000 AS BIGINT) AS micros";
        let row = query(time).fetch_one(self.connection()).await?;
        let time = Timestamp::from_microsecond(number(&row, "micros")?);
        Ok(Some(time.map_err(|_| StoreError::Corrupt("micros"))?))
    }

    /// Kind of the database, and the number of its newest migration.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database fails.
    pub async fn database(&mut self) -> Result<(&'static str, i64), StoreError> {
        let kind = if self.is_sqlite() {
            "sqlite"
        } else {
            "postgresql"
        };
        let newest =
            "SELECT CAST(COALESCE(MAX(version), 0) AS BIGINT) AS version FROM _sqlx_migrations";
        let row = query(newest).fetch_one(self.connection()).await?;
        Ok((kind, number(&row, "version")?))
    }

    /// Converts an error of a statement, and notes a read-only connection.
    pub(crate) fn note_error(&self, error: sqlx::Error) -> StoreError {
        noted(error, &self.has_read_only)
    }

    pub(crate) fn is_sqlite(&mut self) -> bool {
        self.connection().backend_name() == "SQLite"
    }

    pub(crate) fn count_written(&self, rows: u64) {
        self.rows_written.fetch_add(rows, Ordering::Relaxed);
    }

    pub(crate) fn connection(&mut self) -> &mut AnyConnection {
        match &mut self.inner {
            Inner::Write { transaction, .. } => transaction,
            Inner::Read(connection) => connection,
        }
    }
}

/// Converts an error, and sets the flag if it is of a read-only connection.
fn noted(error: sqlx::Error, has_read_only: &AtomicBool) -> StoreError {
    if is_read_only(&error) {
        has_read_only.store(true, Ordering::Relaxed);
    }
    error.into()
}

#[cfg(test)]
mod tests {
    use super::MIGRATIONS;
    use std::fmt::Write;

    /// Prefix of each released migration's SHA-384: a database that ran another text refuses to
    /// start.
    const RELEASED: [(i64, &str); 38] = [
        (1, "733d2674e568d31b"),
        (2, "f87873b2f26b8fd5"),
        (3, "b61231e418b52ecb"),
        (4, "22d78e1ef032afde"),
        (5, "e98769e8c7f0b86f"),
        (6, "eaf498824b37f875"),
        (7, "6ef6a54d2f323827"),
        (8, "8b367a61a5247f41"),
        (9, "423e7a37c64d7689"),
        (10, "4d9290eafd39016d"),
        (11, "dac85a4d7eda13e7"),
        (12, "40123558b7f650fe"),
        (13, "e551fc3af4d5c771"),
        (14, "acb8d7d510a54233"),
        (15, "14ca49da85e3d571"),
        (16, "2291bfc158c9d6e3"),
        (17, "2c07d89b4182ed0c"),
        (18, "e8c27f8b711533d4"),
        (19, "2e706c1e8717980f"),
        (20, "bfd66885ad96e180"),
        (21, "363f6d28e5b812f2"),
        (22, "40a470a0f23ed36b"),
        (23, "bfbd77ea886366c7"),
        (24, "b630d7926bad94e2"),
        (25, "21285493aeb996a5"),
        (26, "0eb3ca59f804065f"),
        (27, "da585a1c6edb29e9"),
        (28, "6e839ed11a515298"),
        (29, "eb9ead6d3d810b2c"),
        (30, "379336982a6feff7"),
        (31, "e3a6c638df335fcd"),
        (32, "44f2f3da92295861"),
        (33, "eb2fd32af9210f16"),
        (34, "8dfeab0a5a733b78"),
        (35, "e5302b80631f0665"),
        (36, "769ea11263a41880"),
        (37, "f743f923c0d94ad3"),
        (38, "14ad186611c49520"),
    ];

    #[test]
    fn a_migration_never_changes_once_a_database_ran_it() {
        let known = MIGRATIONS.iter().map(|migration| {
            let mut text = String::new();
            for byte in migration.checksum.iter().take(8) {
                write!(text, "{byte:02x}").unwrap();
            }
            (migration.version, text)
        });
        let known: Vec<_> = known.collect();
        let released = RELEASED.map(|(version, text)| (version, text.to_owned()));
        assert_eq!(known, released, "add a migration instead");
    }
}
