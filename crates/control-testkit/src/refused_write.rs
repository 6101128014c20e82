//! A database that refuses one kind of write, so that a program stays in the state before it.

use sqlx::{AssertSqlSafe, Connection, SqliteConnection, raw_sql};
use tokio::runtime::Builder;

/// A trigger in a SQLite database. The program that writes gets an error, and its transaction is undone.
#[derive(Debug)]
pub struct RefusedWrite {
    url: String,
}

impl RefusedWrite {
    /// Refuses nothing yet in the database at `url`.
    pub fn in_database(url: &str) -> Self {
        Self {
            url: url.to_owned(),
        }
    }

    /// Refuses this write from now on, and no other one. `write` is an event of SQLite's triggers with its
    /// condition: `UPDATE ON rollouts WHEN NEW.state = 'failed'`.
    ///
    /// # Panics
    ///
    /// If the database cannot be changed, or does not understand it.
    pub fn set(&self, write: &str) {
        self.run(&format!(
            "DROP TRIGGER IF EXISTS refused;
             CREATE TRIGGER refused BEFORE {write}
             BEGIN SELECT RAISE(ABORT, 'refused by a test'); END"
        ));
    }

    /// Ends the refusals.
    ///
    /// # Panics
    ///
    /// If the database cannot be changed.
    pub fn clear(&self) {
        self.run("DROP TRIGGER IF EXISTS refused");
    }

    #[expect(clippy::expect_used, reason = "a test may stop")]
    fn run(&self, statements: &str) {
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("the runtime starts").block_on(async {
            let connection = SqliteConnection::connect(&self.url).await;
            let mut connection = connection.expect("a SQLite database");
            let run = raw_sql(AssertSqlSafe(statements.to_owned()));
            run.execute(&mut connection)
                .await
                .expect("the trigger statement succeeds");
            connection.close().await.expect("the connection is closed");
        });
    }
}
