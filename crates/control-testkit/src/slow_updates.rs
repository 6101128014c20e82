//! Updates that take their time, so that a program is met in the middle of them.

use crate::database::Database;
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection, SqliteConnection};
use tokio::runtime::Builder;

/// A trigger on one table: each row that is updated takes about two milliseconds.
#[derive(Debug)]
pub struct SlowUpdates<'a> {
    database: &'a Database,
    table: &'static str,
}

impl<'a> SlowUpdates<'a> {
    /// Updates of this table are slow from now on.
    ///
    /// # Panics
    ///
    /// If the database cannot be changed.
    pub fn start(database: &'a Database, table: &'static str) -> Self {
        let trigger = if database.kind == "postgres" {
            format!(
                "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql
                 AS 'BEGIN PERFORM pg_sleep(0.002); RETURN NEW; END';
                 CREATE TRIGGER slow BEFORE UPDATE ON {table} FOR EACH ROW EXECUTE FUNCTION slow()"
            )
        } else {
            format!(
                "CREATE TRIGGER slow BEFORE UPDATE ON {table} BEGIN
                 SELECT COUNT(*) FROM (WITH RECURSIVE n(i) AS
                     (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 20000) SELECT i FROM n);
                 END"
            )
        };
        let slow = Self { database, table };
        slow.run(trigger);
        slow
    }

    /// They are as fast as before.
    ///
    /// # Panics
    ///
    /// If the database cannot be changed.
    pub fn end(self) {
        self.run(if self.database.kind == "postgres" {
            format!("DROP TRIGGER slow ON {}; DROP FUNCTION slow()", self.table)
        } else {
            "DROP TRIGGER slow".to_owned()
        });
    }

    #[expect(clippy::expect_used, reason = "a test may stop")]
    fn run(&self, statements: String) {
        let (url, statements) = (&self.database.url, AssertSqlSafe(statements));
        let runtime = Builder::new_current_thread().enable_all().build();
        runtime.expect("the runtime starts").block_on(async {
            if self.database.kind == "postgres" {
                let connection = PgConnection::connect(url).await;
                let mut connection = connection.expect("a PostgreSQL database");
                let done = connection.execute(sqlx::raw_sql(statements)).await;
                done.expect("the trigger statement succeeds");
                connection.close().await.expect("the connection is closed");
            } else {
                let connection = SqliteConnection::connect(url).await;
                let mut connection = connection.expect("a SQLite database");
                let done = connection.execute(sqlx::raw_sql(statements)).await;
                done.expect("the trigger statement succeeds");
                connection.close().await.expect("the connection is closed");
            }
        });
    }
}
