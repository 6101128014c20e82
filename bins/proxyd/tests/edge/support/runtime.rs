//! Where asynchronous tests live.

use proxy_testkit::PATIENCE;
use tokio::task::LocalSet;

/// Runs a test to its end, or fails when that does not come.
#[track_caller]
pub(crate) fn live<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let patient = async { tokio::time::timeout(2 * PATIENCE, test).await };
    let done = LocalSet::new().block_on(&runtime, patient);
    done.unwrap_or_else(|_| panic!("the test does not come to its end"))
}
