//! Where asynchronous tests live.

use proxy_testkit::EVENT_TIMEOUT;

/// Runs a test to its end, or fails when that does not come. What it spawns runs on another thread, so
/// that the test itself may wait for threads.
#[track_caller]
pub(crate) fn live<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let patient = async { tokio::time::timeout(2 * EVENT_TIMEOUT, test).await };
    let done = runtime.block_on(patient);
    done.unwrap_or_else(|_| panic!("the test does not come to its end"))
}
