//! Options of the connection pools.

use sqlx::any::AnyPoolOptions;
use sqlx::{Connection, Executor};
use std::time::Duration;

/// Maximum wait for a connection, or for SQLite's single writer.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);

/// Options of a pool; `setup` runs on each new connection.
pub(crate) fn pool_options(max_connections: u32, setup: &'static str) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(MAX_WAIT)
        // SQLite rolls a transaction back itself when the disk is full. The library does not
        // notice, and the connection would refuse every later transaction.
        .before_acquire(|connection, _| {
            Box::pin(async move { Ok(!connection.is_in_transaction()) })
        })
        .after_connect(move |connection, _| {
            Box::pin(async move {
                if !setup.is_empty() {
                    connection.execute(setup).await?;
                }
                Ok(())
            })
        })
}
