//! The runtime of asynchronous tests.

use proxy_testkit::EVENT_TIMEOUT;

/// Runs a test with a deadline. Spawned tasks run on another thread, so that the test itself may
/// block.
#[track_caller]
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let bounded = async { tokio::time::timeout(2 * EVENT_TIMEOUT, test).await };
    let done = runtime.block_on(bounded);
    done.unwrap_or_else(|_| panic!("the test did not end in time"))
}
