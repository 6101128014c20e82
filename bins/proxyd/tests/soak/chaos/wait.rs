//! The pauses of clients and targets, which belong to their load.

use std::future::pending;
use std::time::Duration;

pub(super) async fn wait(time: Duration) {
    drop(tokio::time::timeout(time, pending::<()>()).await);
}
