//! Request counts from heartbeats, gathered in memory until their five-minute step is over.

use control_domain::{RouteCounts, StepTraffic, TrafficStep};
use control_store::{Store, StoreError};
use control_wire::{NodeId, ProjectId};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use tokio::sync::Mutex;

/// Delay of writing a step after its end, so that its last heartbeats are included.
const LAST_HEARTBEATS: SignedDuration = SignedDuration::from_secs(5);
/// Age at which a step that cannot be written is dropped, to bound memory.
const MAX_AGE: SignedDuration = SignedDuration::from_hours(2);

/// Start of a five-minute step, and a project.
type Key = (Timestamp, ProjectId);

/// Counts that this replica has not written yet. A crash loses up to five minutes of them.
#[derive(Debug, Default)]
pub(crate) struct GatheredTraffic {
    steps: Mutex<BTreeMap<Key, StepTraffic>>,
}

impl GatheredTraffic {
    /// Adds the requests that a node reported at `now`.
    pub(crate) async fn count(
        &self,
        project: ProjectId,
        node: NodeId,
        counted: &RouteCounts,
        now: Timestamp,
    ) {
        let key = (TrafficStep::FiveMinutes.begin(now), project);
        let mut steps = self.steps.lock().await;
        steps.entry(key).or_default().count(node, counted);
    }

    /// Writes the steps that are over at `now`. The next call retries steps that could not be
    /// written.
    pub(crate) async fn write(&self, store: &Store, now: Timestamp) -> Result<(), StoreError> {
        let over = self.take_over(now).await;
        self.write_steps(store, over).await
    }

    /// Writes all steps, when the program stops.
    pub(crate) async fn write_all(&self, store: &Store) -> Result<(), StoreError> {
        let all = std::mem::take(&mut *self.steps.lock().await);
        self.write_steps(store, all).await
    }

    async fn write_steps(
        &self,
        store: &Store,
        over: BTreeMap<Key, StepTraffic>,
    ) -> Result<(), StoreError> {
        let mut result = Ok(());
        for ((at, project), traffic) in over {
            // Once the database is down, the remaining steps are only put back: each write would
            // wait for its time limit.
            let is_down = matches!(
                result,
                Err(StoreError::Unavailable(_) | StoreError::Unwritable)
            );
            if !is_down {
                match write_step(store, project, at, &traffic).await {
                    Ok(()) => continue,
                    Err(error) => result = Err(error),
                }
            }
            let mut steps = self.steps.lock().await;
            steps.entry((at, project)).or_default().add(&traffic);
        }
        result
    }

    /// Removes and returns the steps that are over; drops steps that are too old.
    async fn take_over(&self, now: Timestamp) -> BTreeMap<Key, StepTraffic> {
        let begun = now
            .checked_sub(TrafficStep::FiveMinutes.length() + LAST_HEARTBEATS)
            .unwrap_or(now);
        let oldest = now.checked_sub(MAX_AGE).unwrap_or(now);
        let mut steps = self.steps.lock().await;
        let over = steps.extract_if(.., |(at, _), _| *at <= begun);
        over.filter(|((at, _), _)| oldest <= *at).collect()
    }
}

async fn write_step(
    store: &Store,
    project: ProjectId,
    at: Timestamp,
    traffic: &StepTraffic,
) -> Result<(), StoreError> {
    let mut tx = store.begin_unsynced().await?;
    tx.add_traffic(project, at, traffic).await?;
    tx.commit().await
}

#[cfg(test)]
mod tests {
    use super::*;
    use control_domain::CountedRequests;
    use uuid::Uuid;

    fn requests(requests: u64) -> RouteCounts {
        let counted = CountedRequests {
            requests,
            ..CountedRequests::default()
        };
        RouteCounts {
            routes: [("api".to_owned(), counted)].into(),
        }
    }

    #[tokio::test]
    async fn a_step_is_taken_when_it_is_over_and_dropped_when_it_is_old() {
        let gathered = GatheredTraffic::default();
        let at = |text: &str| -> Timestamp { format!("2026-11-26T{text}Z").parse().unwrap() };
        let (project, node) = (ProjectId(Uuid::from_u128(1)), NodeId(Uuid::from_u128(2)));
        for (time, count) in [
            ("06:00:01", 1),
            ("10:00:00", 2),
            ("10:04:59", 3),
            ("10:05:00", 4),
        ] {
            gathered
                .count(project, node, &requests(count), at(time))
                .await;
        }
        assert_eq!(gathered.take_over(at("06:05:01")).await.len(), 0);
        let over = gathered.take_over(at("10:05:05")).await;
        let counts: Vec<(Timestamp, u64)> = over
            .iter()
            .map(|((at, _), step)| (*at, step.routes.total().requests))
            .collect();
        assert_eq!(counts, [(at("10:00:00"), 5)], "06:00 is too old");
        assert_eq!(gathered.take_over(at("10:10:05")).await.len(), 1);
    }
}
