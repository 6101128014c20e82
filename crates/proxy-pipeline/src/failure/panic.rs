//! Containment of panics: a panic ends only its request.

use proxy_errors::{Detail, Problem, Reason};
use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

/// The result of `work`; a panic becomes a problem.
pub(crate) fn contain<T>(
    mut work: Pin<&mut impl Future<Output = Result<T, Problem>>>,
) -> impl Future<Output = Result<T, Problem>> {
    poll_fn(move |cx| {
        // After a panic the future is dropped and never polled again, so its inconsistent state is
        // never observed.
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(cx)));
        polled.unwrap_or_else(|panic| Poll::Ready(Err(problem(&*panic))))
    })
}

fn problem(panic: &(dyn Any + Send)) -> Problem {
    let reported = panic.downcast_ref::<&str>().map(ToString::to_string);
    let reported = reported.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = reported.unwrap_or_else(|| "no panic message".to_owned());
    Problem::new(Reason::Panic, Detail::text(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::task::{Context, Waker};

    #[test]
    fn a_panic_becomes_a_problem_with_its_message() {
        let quiet = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let mut cx = Context::from_waker(Waker::noop());
        let polled = pin!(contain::<()>(pin!(async { panic!("oh no") }))).poll(&mut cx);
        std::panic::set_hook(quiet);

        let Poll::Ready(Err(problem)) = polled else {
            unreachable!("a panic ends the work at once");
        };
        assert_eq!(problem.reason(), Reason::Panic);
        assert_eq!(problem.status(), 500);
        assert_eq!(problem.detail(), &Detail::text("oh no"));
    }

    #[test]
    fn work_that_does_not_panic_is_left_alone() {
        let mut cx = Context::from_waker(Waker::noop());
        let polled = pin!(contain(pin!(async { Ok(7) }))).poll(&mut cx);

        assert_eq!(polled, Poll::Ready(Ok(7)));
    }
}
