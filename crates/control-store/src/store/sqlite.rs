//! SQLite specifics: the single writer's permit, a connection with commits that do not wait for the
//! disk, and checkpoints of the write-ahead log.
//!
//! SQLite's automatic checkpoint runs within the commit that fills the log: that commit and all
//! queued ones would wait for the disk, half a second on a slow one.

use crate::error::StoreError;
use crate::store::pool::pool_options;
use sqlx::{AnyPool, Error, Row, query};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Maximum number of connections. Each has a thread, a page cache of half a MiB, the schema and its
/// prepared statements: about 4 MiB. More readers than cores gain nothing, because uncached pages
/// come from the system's file cache.
pub(crate) const MAX_CONNECTIONS: u32 = 6;
/// Statements that set up a new connection.
pub(crate) const SETUP: &str =
    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -512";
/// Statements that set up the connection with commits that do not wait for the disk.
const UNSYNCED_SETUP: &str =
    "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA cache_size = -512;
     PRAGMA synchronous = NORMAL";
/// Statements that set up the connection that stays open. The read opens the index of the log.
const KEPT_SETUP: &str = "PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0;
     PRAGMA cache_size = -64; SELECT 1 FROM sqlite_master LIMIT 1";
/// Pause between two checkpoints. It bounds the loss of unsynced transactions in a power failure.
const PAUSE: Duration = Duration::from_secs(1);
/// Log size, in pages of 4 KiB (64 MiB), from which writers wait for a complete checkpoint. The
/// next writer then restarts the log.
const MAX_LOG_PAGES: i64 = 16_384;

/// State shared by the connections.
#[derive(Clone, Debug)]
pub(crate) struct Sqlite {
    /// Permit of the single writer, granted first come, first served. SQLite's own lock makes
    /// writers retry after pauses, some of them for seconds.
    pub(crate) writer: Arc<Semaphore>,
    /// Pool of the connection with commits that do not wait for the disk.
    pub(crate) unsynced: AnyPool,
    /// Pool of an unused connection that stays open. All connections share one index of the log: if
    /// the last one closed on a read-only file system, later ones could not write until all of them
    /// were closed at the same time.
    pub(crate) kept: AnyPool,
    _checkpoints: Arc<Checkpoints>,
}

/// Background task that checkpoints the log; aborted on drop.
#[derive(Debug)]
struct Checkpoints {
    task: JoinHandle<()>,
}

impl Sqlite {
    /// Starts checkpoints of `pool`'s log, made whenever `rows_written` has grown.
    pub(crate) async fn start(
        url: &str,
        pool: &AnyPool,
        rows_written: &Arc<AtomicU64>,
    ) -> Result<Self, StoreError> {
        let kept = pool_options(1, KEPT_SETUP)
            .idle_timeout(None::<Duration>)
            .max_lifetime(None::<Duration>)
            .connect(url)
            .await?;
        let writer = Arc::new(Semaphore::new(1));
        let task = tokio::spawn(copy_in_turns(
            pool.clone(),
            Arc::clone(&writer),
            Arc::clone(rows_written),
        ));
        Ok(Self {
            writer,
            unsynced: pool_options(1, UNSYNCED_SETUP).connect_lazy(url)?,
            kept,
            _checkpoints: Arc::new(Checkpoints { task }),
        })
    }
}

impl Drop for Checkpoints {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn copy_in_turns(pool: AnyPool, writer: Arc<Semaphore>, rows_written: Arc<AtomicU64>) {
    let mut copied = 0;
    while !pool.is_closed() {
        sleep(PAUSE).await;
        let written = rows_written.load(Ordering::Relaxed);
        // Retries a checkpoint that a full disk or an old reader blocked.
        if written != copied
            && let Ok(true) = copy_log(&pool, &writer, MAX_LOG_PAGES).await
        {
            copied = written;
        }
    }
}

/// Checkpoints the log; holds the writer's permit if the log exceeds `max_pages`. Returns true if
/// the checkpoint is complete.
async fn copy_log(pool: &AnyPool, writer: &Semaphore, max_pages: i64) -> Result<bool, Error> {
    let (pages, copied) = copy_pages(pool).await?;
    if pages <= max_pages {
        return Ok(pages == copied);
    }
    let _turn = writer.acquire().await.map_err(|_| Error::PoolClosed)?;
    let (pages, copied) = copy_pages(pool).await?;
    Ok(pages == copied)
}

/// Checkpoints pages that no reader or writer needs; returns the number of pages in the log, and of
/// those checkpointed.
async fn copy_pages(pool: &AnyPool) -> Result<(i64, i64), Error> {
    let row = query("PRAGMA wal_checkpoint(PASSIVE)").fetch_one(pool);
    let row = row.await?;
    Ok((row.try_get("log")?, row.try_get("checkpointed")?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statement::sql;
    use crate::store::Store;
    use control_testkit::until;
    use sqlx::any::install_default_drivers;
    use std::path::Path;
    use tokio::task::yield_now;
    use tokio::time::timeout;

    fn url(folder: &Path) -> String {
        format!("sqlite://{}?mode=rwc", folder.join("store.db").display())
    }

    async fn pragma(tx: &mut crate::Transaction, text: &'static str) -> i64 {
        let row = query(text).fetch_one(tx.connection()).await.unwrap();
        row.try_get(0).unwrap()
    }

    #[tokio::test]
    async fn only_unsynced_commits_do_not_wait_for_the_disk() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&url(folder.path())).await.unwrap();
        let (full, normal) = (2, 1);
        for _ in 0..3 {
            let mut tx = store.begin_unsynced().await.unwrap();
            assert_eq!(pragma(&mut tx, "PRAGMA synchronous").await, normal);
            tx.commit().await.unwrap();
            let mut tx = store.begin().await.unwrap();
            assert_eq!(pragma(&mut tx, "PRAGMA synchronous").await, full);
            assert_eq!(pragma(&mut tx, "PRAGMA wal_autocheckpoint").await, 0);
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn committed_pages_reach_the_database_file_during_commits() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&url(folder.path())).await.unwrap();
        let mut tx = store.begin_unsynced().await.unwrap();
        let text = "INSERT INTO orgs (id, name, created_at, version) VALUES ('i', 'copied', 0, 1)";
        let done = query(text).execute(tx.connection()).await.unwrap();
        tx.count_written(done.rows_affected());
        tx.commit().await.unwrap();
        let file = folder.path().join("store.db");
        until("the row is in the database file", || {
            std::fs::read(&file)
                .unwrap()
                .windows(6)
                .any(|six| six == b"copied")
        });
    }

    /// Waits until a connection that was used is free again.
    async fn until_idle(store: &Store) {
        let idle = async {
            while store.connections().idle == 0 {
                yield_now().await;
            }
        };
        timeout(Duration::from_mins(1), idle).await.unwrap();
    }

    #[tokio::test]
    async fn a_connection_that_refuses_a_write_as_read_only_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let writable = Store::open(&url(folder.path())).await.unwrap();
        let read_only = url(folder.path()).replace("mode=rwc", "mode=ro");
        let store = Store::open_as_is(&read_only).await.unwrap();
        // The size of its cache marks the connection.
        let mut tx = store.begin().await.unwrap();
        let mark = query("PRAGMA cache_size = -300").execute(tx.connection());
        mark.await.unwrap();
        tx.commit().await.unwrap();
        until_idle(&store).await;
        let mut tx = store.begin().await.unwrap();
        assert_eq!(pragma(&mut tx, "PRAGMA cache_size").await, -300);
        let refused = sql("UPDATE orgs SET version = version").run(&mut tx).await;
        assert!(
            matches!(refused, Err(StoreError::Unavailable(_))),
            "{refused:?}"
        );
        drop(tx);
        until_idle(&store).await;
        let mut tx = store.begin().await.unwrap();
        assert_eq!(pragma(&mut tx, "PRAGMA cache_size").await, -512);
        drop(tx);
        store.close().await;
        writable.close().await;
    }

    #[tokio::test]
    async fn a_long_log_is_copied_in_the_writers_place_and_begun_anew() {
        install_default_drivers();
        let folder = tempfile::tempdir().unwrap();
        let pool = pool_options(2, SETUP).connect(&url(folder.path())).await;
        let (pool, writer) = (pool.unwrap(), Semaphore::new(1));
        query("CREATE TABLE filler (bytes)")
            .execute(&pool)
            .await
            .unwrap();
        let fill = "INSERT INTO filler VALUES (zeroblob(100000))";
        query(fill).execute(&pool).await.unwrap();

        let turn = writer.acquire().await.unwrap();
        let waiting = timeout(Duration::from_millis(300), copy_log(&pool, &writer, 10));
        assert!(waiting.await.is_err());
        drop(turn);
        assert!(copy_log(&pool, &writer, 10).await.unwrap());

        let (long, _) = copy_pages(&pool).await.unwrap();
        query("INSERT INTO filler VALUES (1)")
            .execute(&pool)
            .await
            .unwrap();
        let (short, _) = copy_pages(&pool).await.unwrap();
        assert!(long > 20 && short < 10, "{long} pages, then {short}");
    }
}
