//! The database and its transactions.

use crate::error::StoreError;
use sqlx::any::{AnyPoolOptions, install_default_drivers};
use sqlx::migrate::Migrator;
use sqlx::{Any, AnyConnection, AnyPool, Executor, query};

static MIGRATIONS: Migrator = sqlx::migrate!("./migrations");

const MAX_CONNECTIONS: u32 = 16;

/// The database. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Store {
    pool: AnyPool,
    begin: &'static str,
}

/// One command's reads and writes. Dropped without [`Transaction::commit`], it never happened.
#[derive(Debug)]
pub struct Transaction(sqlx::Transaction<'static, Any>);

impl Store {
    /// Connects to `sqlite://FILE?mode=rwc` or `postgres://…`, and brings the schema up to date.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database cannot be reached, or a migration fails.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        install_default_drivers();
        let mut options = AnyPoolOptions::new().max_connections(MAX_CONNECTIONS);
        let is_sqlite = url.starts_with("sqlite:");
        if is_sqlite {
            options = options.after_connect(|connection, _| {
                Box::pin(async move {
                    connection.execute("PRAGMA journal_mode = WAL").await?;
                    Ok(())
                })
            });
        }
        let pool = options.connect(url).await?;
        MIGRATIONS.run(&pool).await?;
        // SQLite has one writer: taking its place first keeps a reader that turns writer from
        // failing half-way.
        let begin = if is_sqlite {
            "BEGIN IMMEDIATE"
        } else {
            "BEGIN"
        };
        Ok(Self { pool, begin })
    }

    /// A transaction that writes.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no connection is free in 30 seconds.
    pub async fn begin(&self) -> Result<Transaction, StoreError> {
        Ok(Transaction(self.pool.begin_with(self.begin).await?))
    }

    /// A transaction that only reads.
    ///
    /// # Errors
    ///
    /// [`StoreError::Unavailable`] if no connection is free in 30 seconds.
    pub async fn read(&self) -> Result<Transaction, StoreError> {
        Ok(Transaction(self.pool.begin().await?))
    }

    /// Whether the database answers.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if it does not.
    pub async fn ping(&self) -> Result<(), StoreError> {
        query("SELECT 1").execute(&self.pool).await?;
        Ok(())
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
        Ok(self.0.commit().await?)
    }

    pub(crate) fn connection(&mut self) -> &mut AnyConnection {
        &mut self.0
    }
}
