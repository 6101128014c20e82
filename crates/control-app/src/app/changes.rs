//! Wakes long polls and live pages when something changes.

use std::time::Duration;
use tokio::sync::watch;
use tokio::time::timeout;

/// The number of the newest audit entry known to this process.
///
/// It signals only when to read. Changes are read from the database, so a message that is lost, or
/// sent by another replica, costs a second of delay and no result.
#[derive(Debug, Default)]
pub struct Changes(watch::Sender<Head>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Head {
    #[default]
    Unknown,
    At(i64),
    Closed,
}

/// Reason for the end of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wake {
    /// Something changed: read again.
    Changed,
    /// No change within the timeout.
    TimedOut,
    /// The program stops: respond at once.
    Closed,
}

/// A subscription of one long poll or live page.
#[derive(Debug)]
pub struct Waiter(watch::Receiver<Head>);

impl Changes {
    /// Receives every change from now on, also ones before the first wait.
    pub fn subscribe(&self) -> Waiter {
        Waiter(self.0.subscribe())
    }

    pub(crate) fn publish(&self, head: i64) {
        self.advance(Head::At(head));
    }

    /// Ends every wait, now and later: the program stops.
    pub fn close(&self) {
        self.advance(Head::Closed);
    }

    fn advance(&self, to: Head) {
        self.0.send_if_modified(|head| {
            let newer = *head < to;
            *head = to.max(*head);
            newer
        });
    }
}

impl Waiter {
    /// Waits for the next change, at most `limit`.
    pub async fn wait(&mut self, limit: Duration) -> Wake {
        let changed = timeout(limit, self.0.changed()).await;
        match (changed, *self.0.borrow()) {
            (Err(_), _) => Wake::TimedOut,
            (Ok(Err(_)), _) | (_, Head::Closed) => Wake::Closed,
            (Ok(Ok(())), Head::Unknown | Head::At(_)) => Wake::Changed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT_LIMIT: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn a_change_before_the_wait_is_not_missed() {
        let changes = Changes::default();
        let mut waiter = changes.subscribe();
        changes.publish(1);
        assert_eq!(waiter.wait(WAIT_LIMIT).await, Wake::Changed);
        changes.publish(1);
        assert_eq!(waiter.wait(Duration::ZERO).await, Wake::TimedOut);
        changes.close();
        changes.publish(2);
        assert_eq!(waiter.wait(WAIT_LIMIT).await, Wake::Closed);
    }
}
