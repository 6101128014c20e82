//! Waits for other programs.

use std::thread::sleep;
use std::time::Duration;
use xtask_kit::task_error::TaskError;

const PAUSE: Duration = Duration::from_millis(200);

/// Repeats an attempt until it succeeds, for about `time`; the last error otherwise.
#[expect(
    clippy::disallowed_methods,
    reason = "programs in other namespaces report nothing to wait for"
)]
pub(crate) fn until<T>(
    time: Duration,
    mut attempt: impl FnMut() -> Result<T, TaskError>,
) -> Result<T, TaskError> {
    let mut left = time;
    loop {
        match attempt() {
            Err(_) if !left.is_zero() => sleep(PAUSE),
            ended => return ended,
        }
        left = left.saturating_sub(PAUSE);
    }
}
