//! Copying in both directions, until both have ended.

use super::half::Half;
use super::stream::RelayStream;
use crate::response::tunnel::{CarriedBytes, IdleTimer, TunnelEnd};
use proxy_clock::Timer;
use std::future::poll_fn;
use std::task::Poll;

/// Both directions of a relayed connection.
pub(super) struct Copy<'s, C, T> {
    client: &'s mut C,
    target: &'s mut T,
    up: Half,
    down: Half,
}

impl<'s, C: RelayStream, T: RelayStream> Copy<'s, C, T> {
    /// A copy that begins with `early`, the bytes already read from the client.
    pub(super) fn new(client: &'s mut C, target: &'s mut T, early: Vec<u8>) -> Self {
        Self {
            client,
            target,
            up: Half::beginning_with(early),
            down: Half::default(),
        }
    }

    /// Copies until the relay ends. `is_cut` is evaluated at every wake-up.
    pub(super) async fn run(
        self,
        timer: IdleTimer<'_>,
        mut is_cut: impl FnMut() -> bool,
    ) -> (TunnelEnd, CarriedBytes) {
        let IdleTimer {
            clock,
            deadline,
            idle,
        } = timer;
        let Self {
            client,
            target,
            mut up,
            mut down,
        } = self;
        // From here on only the idle timer applies.
        deadline.clear();
        deadline.start(clock, Timer::TunnelIdle, idle);
        let end = poll_fn(|cx| {
            deadline.watch(cx.waker());
            if is_cut() {
                return Poll::Ready(TunnelEnd::Cut);
            }
            let before = (up.carried(), down.carried());
            let upward = up.poll(cx, client, target);
            let downward = down.poll(cx, target, client);
            if before != (up.carried(), down.carried()) {
                deadline.start(clock, Timer::TunnelIdle, idle);
            }
            match (upward, downward) {
                (Poll::Ready(Err(_)), _) | (_, Poll::Ready(Err(_))) => {
                    Poll::Ready(TunnelEnd::Broken)
                }
                (Poll::Ready(Ok(())), Poll::Ready(Ok(()))) => Poll::Ready(TunnelEnd::Closed),
                (Poll::Pending, _) | (_, Poll::Pending) => match deadline.take_expired() {
                    Some((_, after)) => Poll::Ready(TunnelEnd::Idle(after)),
                    None => Poll::Pending,
                },
            }
        })
        .await;
        let carried = CarriedBytes {
            up: up.carried(),
            down: down.carried(),
        };
        (end, carried)
    }
}
