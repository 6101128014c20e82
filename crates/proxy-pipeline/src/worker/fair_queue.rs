//! A bounded queue in which clients take turns.

use proxy_limits::ClientKey;

/// Jobs that wait, at most `max`. A client's second job waits until each other client has had a
/// turn, and jobs of clients that have failed before wait behind all other jobs.
#[derive(Debug)]
pub(crate) struct FairQueue<J> {
    max: usize,
    waiting: Vec<Waiting<J>>,
    /// Number of jobs pushed.
    pushed: u64,
    /// The turn of the latest job that was taken.
    turn: u64,
}

/// The client of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct JobOwner {
    pub(crate) client: ClientKey,
    /// Earlier jobs of the client have failed.
    pub(crate) has_failed: bool,
}

#[derive(Debug)]
struct Waiting<J> {
    client: ClientKey,
    order: Order,
    job: J,
}

/// Position of a job in the queue: the least is taken first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Order {
    has_failed: bool,
    turn: u64,
    number: u64,
}

impl<J> FairQueue<J> {
    pub(crate) const fn new(max: usize) -> Self {
        Self {
            max,
            waiting: Vec::new(),
            pushed: 0,
            turn: 0,
        }
    }

    /// Adds a job of `owner`. In a full queue it replaces the job that would run last, which is
    /// dropped.
    ///
    /// # Errors
    /// The queue is full, and `job` itself would be taken last.
    pub(crate) fn push(&mut self, owner: JobOwner, job: J) -> Result<(), J> {
        let JobOwner { client, has_failed } = owner;
        let own = self.waiting.iter().filter(|one| one.client == client);
        let own = u64::try_from(own.count()).unwrap_or(u64::MAX);
        let order = Order {
            has_failed,
            turn: self.turn.saturating_add(own),
            number: self.pushed,
        };
        if self.max <= self.waiting.len() {
            let last = (0..).zip(&self.waiting).max_by_key(|(_, one)| one.order);
            let last = last.filter(|(_, one)| order < one.order);
            let Some((index, _)) = last else {
                return Err(job);
            };
            self.waiting.swap_remove(index);
        }
        self.pushed += 1;
        self.waiting.push(Waiting { client, order, job });
        Ok(())
    }

    /// Takes the next job.
    pub(crate) fn pop(&mut self) -> Option<J> {
        let next = (0..).zip(&self.waiting).min_by_key(|(_, one)| one.order);
        let (index, _) = next?;
        let next = self.waiting.swap_remove(index);
        self.turn = self.turn.max(next.order.turn);
        Some(next.job)
    }

    /// Drops the jobs that are not `wanted`.
    pub(crate) fn retain(&mut self, wanted: impl Fn(&J) -> bool) {
        self.waiting.retain(|one| wanted(&one.job));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(client: u32, has_failed: bool) -> JobOwner {
        let client = ClientKey::V4(client);
        JobOwner { client, has_failed }
    }

    fn drain<J>(queue: &mut FairQueue<J>) -> Vec<J> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn clients_take_turns() {
        let mut queue = FairQueue::new(9);
        for job in ["a1", "a2", "a3"] {
            queue.push(owner(1, false), job).unwrap();
        }
        assert_eq!(queue.pop(), Some("a1"));
        assert_eq!(queue.pop(), Some("a2"));
        for (client, job) in [(2, "b1"), (2, "b2"), (3, "c1")] {
            queue.push(owner(client, false), job).unwrap();
        }
        assert_eq!(drain(&mut queue), ["b1", "c1", "a3", "b2"]);
    }

    #[test]
    fn jobs_of_clients_with_earlier_failures_wait_after_all_others() {
        let mut queue = FairQueue::new(9);
        queue.push(owner(1, true), "a").unwrap();
        for job in ["b1", "b2"] {
            queue.push(owner(2, false), job).unwrap();
        }
        assert_eq!(drain(&mut queue), ["b1", "b2", "a"]);
    }

    #[test]
    fn a_client_with_fewer_jobs_takes_a_place_of_the_one_with_the_most() {
        let mut queue = FairQueue::new(3);
        for job in ["a1", "a2", "a3"] {
            queue.push(owner(1, false), job).unwrap();
        }
        assert_eq!(queue.push(owner(1, false), "a4"), Err("a4"));
        queue.push(owner(2, false), "b1").unwrap();
        queue.push(owner(3, false), "c1").unwrap();
        // All three have one each.
        assert_eq!(queue.push(owner(4, false), "d1"), Err("d1"));
        assert_eq!(drain(&mut queue), ["a1", "b1", "c1"]);
    }

    #[test]
    fn a_client_without_failures_takes_a_place_of_one_with_some() {
        let mut queue = FairQueue::new(2);
        for (client, job) in [(1, "a"), (2, "b")] {
            queue.push(owner(client, true), job).unwrap();
        }
        queue.push(owner(3, false), "c").unwrap();
        assert_eq!(drain(&mut queue), ["c", "a"]);
    }

    #[test]
    fn cancelled_jobs_free_their_slots() {
        let mut queue = FairQueue::new(2);
        queue.push(owner(1, false), "a").unwrap();
        queue.push(owner(1, false), "b").unwrap();
        queue.retain(|job| *job == "b");
        queue.push(owner(1, false), "c").unwrap();
        assert_eq!(drain(&mut queue), ["b", "c"]);
    }
}
