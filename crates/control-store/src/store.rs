//! The database and its transactions.

use crate::error::StoreError;
use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::migrate::Migrator;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, AnyPool, Connection, Executor, query};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

const MAX_CONNECTIONS: u32 = 16;
/// The longest wait for a connection, or for the place of SQLite's writer.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// The longest wait for the answer to a ping: a load balancer asks often, and gives up soon.
const MAX_PING: Duration = Duration::from_secs(2);

/// The database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    begin: &'static str,
    /// The permit of SQLite's one writer, granted in the order of waiting. SQLite alone would let
    /// them try again after a pause, and the unlucky ones for seconds.
    writer: Option<Arc<Semaphore>>,
    rows_written: Arc<AtomicU64>,
}

/// One command's reads and writes. Dropped without [`Transaction::commit`], it never happened.
#[derive(Debug)]
pub struct Transaction {
    inner: Inner,
    rows_written: Arc<AtomicU64>,
}

#[derive(Debug)]
enum Inner {
    Write {
        transaction: sqlx::Transaction<'static, Any>,
        _writer: Option<OwnedSemaphorePermit>,
    },
    /// Statements that each see what is committed, without two more on either side.
    Read(PoolConnection<Any>),
}

impl Store {
    /// Connects to `sqlite://FILE?mode=rwc` or `postgres://…`, and brings the schema up to date.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be reached, or a migration fails.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        install_default_drivers();
        let mut options = AnyPoolOptions::new()
            .max_connections(MAX_CONNECTIONS)
            .acquire_timeout(MAX_WAIT)
            // SQLite ends a transaction by itself when the disk is full; the library does not
            // notice, and the connection would refuse every later one.
            .before_acquire(|connection, _| {
                Box::pin(async move { Ok(!connection.is_in_transaction()) })
            });
        let is_sqlite = url.starts_with("sqlite:");
        if is_sqlite {
            options = options.after_connect(|connection, _| {
                Box::pin(async move {
                    connection.execute("PRAGMA journal_mode = WAL").await?;
                    Ok(())
                })
            });
        }
        if is_sqlite {
            // The pool would try again for half a minute with a file that is no database.
            let mut connection = AnyConnection::connect(url).await?;
            connection.execute("PRAGMA schema_version").await?;
            connection.close().await?;
        }
        let pool = match options.connect(url).await {
            // The pool tries again until its time is over, and forgets why: one more try tells.
            Err(sqlx::Error::PoolTimedOut) => {
                let tried = AnyConnection::connect(url).await;
                return Err(tried.err().unwrap_or(sqlx::Error::PoolTimedOut).into());
            }
            pool => pool?,
        };
        MIGRATIONS.run(&pool).await?;
        // SQLite has one writer: taking its place first keeps a reader that turns writer from
        // failing half-way.
        let begin = if is_sqlite {
            "BEGIN IMMEDIATE"
        } else {
            "BEGIN"
        };
        let writer = is_sqlite.then(|| Arc::new(Semaphore::new(1)));
        Ok(Self {
            pool,
            begin,
            writer,
            rows_written: Arc::default(),
        })
    }

    /// A transaction that writes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no connection is free in 10 seconds.
    pub async fn begin(&self) -> Result<Transaction, StoreError> {
        let writer = match &self.writer {
            Some(writer) => {
                let turn = timeout(MAX_WAIT, Arc::clone(writer).acquire_owned()).await;
                let turn = turn.map_err(|_| sqlx::Error::PoolTimedOut)?;
                Some(turn.map_err(|_| sqlx::Error::PoolClosed)?)
            }
            None => None,
        };
        let inner = Inner::Write {
            transaction: self.pool.begin_with(self.begin).await?,
            _writer: writer,
        };
        Ok(self.transaction(inner))
    }

    /// For reading only: each statement sees what is committed at its time.
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
            rows_written: Arc::clone(&self.rows_written),
        }
    }

    /// Rows that statements of this process have inserted, updated or deleted, those of transactions
    /// that were rolled back among them.
    pub fn rows_written(&self) -> u64 {
        self.rows_written.load(Ordering::Relaxed)
    }

    /// Copies a SQLite database into a new file, as it is at one moment.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the file exists, cannot be written, or the database is not SQLite.
    pub async fn back_up(&self, file: &str) -> Result<(), StoreError> {
        query("VACUUM INTO $1")
            .bind(file)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Whether the database answers within two seconds.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        let answer = timeout(MAX_PING, query("SELECT 1").execute(&self.pool)).await;
        answer.map_err(|_| sqlx::Error::PoolTimedOut)??;
        Ok(())
    }

    /// Connections that are idle, and those in use.
    pub fn connections(&self) -> (u32, u32) {
        let idle = u32::try_from(self.pool.num_idle()).unwrap_or(u32::MAX);
        (idle, self.pool.size().saturating_sub(idle))
    }

    /// Waits for running transactions, and closes all connections.
    pub async fn close(&self) {
        self.pool.close().await;
    }
}

impl Transaction {
    /// Makes it last.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot; then nothing happened.
    pub async fn commit(self) -> Result<(), StoreError> {
        match self.inner {
            Inner::Write { transaction, .. } => Ok(transaction.commit().await?),
            Inner::Read(_) => Ok(()),
        }
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
