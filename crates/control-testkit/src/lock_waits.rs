//! Transactions of PostgreSQL that wait for each other.

use crate::database::Database;
use sqlx::{Connection, PgConnection, Row};
use std::time::Duration;
use tokio::time::sleep;

const INTERVAL: Duration = Duration::from_millis(10);
const ROUNDS: u32 = 6_000;

/// Waits until a transaction in this PostgreSQL database waits for a lock that another one holds.
///
/// # Panics
///
/// If none does within a minute, or the database does not answer.
#[expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop, and says why"
)]
pub async fn until_lock_wait(database: &Database) {
    let connection = PgConnection::connect(&database.url).await;
    let mut connection = connection.expect("a PostgreSQL database");
    let waiting = "SELECT COUNT(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    for _ in 0..ROUNDS {
        let row = sqlx::query(waiting).fetch_one(&mut connection).await;
        if row.expect("the activity").get::<i64, _>(0) > 0 {
            return;
        }
        sleep(INTERVAL).await;
    }
    panic!("no transaction waits for a lock");
}
