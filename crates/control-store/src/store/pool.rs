//! The options of the pools of connections.

use sqlx::any::AnyPoolOptions;
use sqlx::{Connection, Executor};
use std::time::Duration;

/// The longest wait for a connection, or for the place of SQLite's writer.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(10);

/// Options of a pool; each connection begins with the statements of `setup`.
pub(crate) fn pool_options(max_connections: u32, setup: &'static str) -> AnyPoolOptions {
    AnyPoolOptions::new()
        .max_connections(max_connections)
        .acquire_timeout(MAX_WAIT)
        // SQLite rolls a transaction back itself when the disk is full; the library does not
        // notice, and the connection would refuse every later one.
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
