//! A database as an older version left it.
#![expect(clippy::expect_used, reason = "a test may stop, and says why")]

use crate::database::Database;
use sqlx::any::install_default_drivers;
use sqlx::migrate::Migrator;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row, query, raw_sql};
use std::path::Path;
use tokio::runtime::Builder;

/// Runs the migrations of a folder up to `last` in an empty database, and then the statements of `rows`.
///
/// # Panics
///
/// If they do not succeed, or a table of SQLite stays empty: a migration is proven by rows.
pub fn lay_down(database: &Database, migrations: &Path, last: i64, rows: &str) {
    install_default_drivers();
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let connection = AnyConnection::connect(&database.url).await;
        let mut connection = connection.expect("an empty database");
        let all = Migrator::new(migrations)
            .await
            .expect("the migrations are readable");
        let old = all.iter().filter(|one| one.version <= last).cloned();
        let old = Migrator::with_migrations(old.collect());
        old.run(&mut connection).await.expect("the migrations run");
        let rows = raw_sql(AssertSqlSafe(rows.to_owned()));
        rows.execute(&mut connection)
            .await
            .expect("the rows are inserted");
        if database.kind == "sqlite" {
            refuse_empty_tables(&mut connection).await;
        }
        connection.close().await.expect("the connection is closed");
    });
}

/// Runs statements in the database at `url`, which a program may have open, as a replica of another version would.
///
/// # Panics
///
/// If they do not succeed.
pub fn write_rows(url: &str, rows: &str) {
    install_default_drivers();
    let runtime = Builder::new_current_thread().enable_all().build();
    runtime.expect("the runtime starts").block_on(async {
        let connection = AnyConnection::connect(url).await;
        let mut connection = connection.expect("a database");
        let rows = raw_sql(AssertSqlSafe(rows.to_owned()));
        rows.execute(&mut connection)
            .await
            .expect("the rows are inserted");
        connection.close().await.expect("the connection is closed");
    });
}

async fn refuse_empty_tables(connection: &mut AnyConnection) {
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table'";
    let tables = query(tables).fetch_all(&mut *connection).await;
    for table in tables.expect("the tables are listed") {
        let name: String = table.get(0);
        let first = query(AssertSqlSafe(format!("SELECT 1 FROM {name} LIMIT 1")));
        let first = first.fetch_optional(&mut *connection).await;
        assert!(first.expect("its rows").is_some(), "{name} has no row");
    }
}
