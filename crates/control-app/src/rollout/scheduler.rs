//! The scheduler: advances rollouts and detects drift, on one replica at a time.

use crate::app::App;
use crate::call::Call;
use crate::error::Error;
use crate::metric;
use control_domain::{Actor, BundleState, Observation, Rollout, RolloutState};
use control_store::{StoreError, Transaction, Versioned};
use control_wire::RolloutId;
use jiff::{SignedDuration, Timestamp};
use metrics::{counter, histogram};
use uuid::Uuid;

/// Time until another replica takes over from a crashed one.
const LEASE: SignedDuration = SignedDuration::from_secs(5);
/// Maximum number of steps of one rollout per round, so that it does not delay other rollouts.
const MAX_STEPS: usize = 20;

impl App {
    /// Runs one round over all active rollouts; returns the number of steps. `replica` identifies
    /// this process.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn advance_rollouts(&self, replica: Uuid, now: Timestamp) -> Result<usize, Error> {
        let done = self.advance_all(replica, now).await;
        match &done {
            Ok(_) => self.outage.end(now),
            Err(_) => self.outage.begin(),
        }
        done
    }

    /// Notes that no heartbeats were received until now. A program calls it at its start.
    pub fn note_outage(&self) {
        self.outage.begin();
    }

    /// A node of a rollout with a later report counts as online.
    pub(crate) fn online_since(&self, now: Timestamp) -> Timestamp {
        if self.is_after_outage(now) {
            return Timestamp::UNIX_EPOCH;
        }
        self.heartbeat_interval.online_since(now)
    }

    /// True while the silence of nodes does not prove that they are offline.
    pub(crate) fn is_after_outage(&self, now: Timestamp) -> bool {
        self.outage.hides_nodes(self.heartbeat_interval, now)
    }

    async fn advance_all(&self, replica: Uuid, now: Timestamp) -> Result<usize, Error> {
        if !self.acquire_lease("scheduler", replica, now).await? {
            return Ok(0);
        }
        let (mut steps, mut last) = (0, None);
        loop {
            let page = self.store.read().await?.rollouts_to_advance(last).await?;
            for id in &page {
                steps += self.advance_rollout(*id, now).await?;
            }
            last = page.last().copied();
            if last.is_none() {
                return Ok(steps);
            }
        }
    }

    /// Acquires or extends the lease `name`; returns false if another replica holds it. It only
    /// avoids duplicate work: correctness rests on row versions.
    pub(crate) async fn acquire_lease(
        &self,
        name: &str,
        replica: Uuid,
        now: Timestamp,
    ) -> Result<bool, Error> {
        if self.is_clock_wrong() {
            return Ok(false);
        }
        let acquired = async {
            let mut tx = self.store.begin().await?;
            let is_held = tx.acquire_lease(name, replica, now, LEASE).await?;
            tx.commit().await?;
            Ok(is_held)
        };
        let acquired = acquired.await;
        self.note_write(&acquired);
        Ok(acquired?)
    }

    /// Takes the steps of a rollout that are possible now; returns their number. A failed step is
    /// logged, so that other rollouts continue.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the database does not answer.
    pub async fn advance_rollout(&self, id: RolloutId, now: Timestamp) -> Result<usize, Error> {
        for steps in 0..MAX_STEPS {
            let started = self.precise_now();
            let step = self.step(id, now).await;
            let took = self.precise_now().duration_since(started);
            histogram!(metric::ROLLOUT_STEP_DURATION).record(took.as_secs_f64().max(0.0));
            match step {
                Ok(true) => {}
                // An operator or another replica changed it first: the next round reads that
                // change.
                Ok(false) | Err(Error::Store(StoreError::Stale)) => return Ok(steps),
                Err(error @ Error::Store(StoreError::Unavailable(_))) => return Err(error),
                Err(error) => {
                    tracing::error!(rollout = %id, %error, "a rollout could not take its step");
                    counter!(metric::BACKGROUND_FAILURES, "task" => "rollouts").increment(1);
                    return Ok(steps);
                }
            }
        }
        Ok(MAX_STEPS)
    }

    async fn step(&self, id: RolloutId, now: Timestamp) -> Result<bool, Error> {
        let mut tx = self.store.read().await?;
        let Some(Versioned { value, version }) = tx.rollout(id).await? else {
            return Ok(false);
        };
        let metric = self.metric_answer(&value, now);
        let mut seen = self.observe(&mut tx, &value, now).await?;
        drop(tx);
        seen.metric = metric;
        let Some(change) = value.advance(&Actor::System, &seen, now)? else {
            return Ok(false);
        };
        let tx = self.store.begin().await?;
        let call = Call::system(now);
        self.store_change(tx, &call, &change, Some(&seen), version)
            .await?;
        Ok(true)
    }

    /// Reads a rollout's state from the database. The cost depends on the batch, not on the fleet.
    async fn observe(
        &self,
        tx: &mut Transaction,
        rollout: &Rollout,
        now: Timestamp,
    ) -> Result<Observation, Error> {
        let is_after_outage = self.is_after_outage(now);
        let since = self.online_since(now);
        let bundle = tx.bundle(rollout.bundle).await?;
        let is_revoked = bundle.is_none_or(|found| found.value.state == BundleState::Revoked);
        let mut seen = Observation {
            is_revoked,
            is_after_outage,
            ..Observation::default()
        };
        match rollout.state {
            RolloutState::RollingBack => {
                let is_late = !is_after_outage && rollout.is_revert_late(now);
                seen.reverting = Some(tx.revert_progress(rollout, since, is_late).await?);
            }
            RolloutState::Running => {
                seen.is_frozen = freeze_end(tx, rollout, now).await?.is_some();
                let reports_since = rollout.reports_since(self.heartbeat_interval.duration());
                seen.batch = tx.count_batch(rollout, since, reports_since).await?;
                seen.rejection = tx.rejection(rollout).await?;
                let has_switched = seen.batch.is_some_and(|counts| counts.ready > 0);
                if rollout.strategy.gate.is_some() && has_switched {
                    seen.compared = Some(tx.compare_batch(rollout, since).await?);
                }
            }
            RolloutState::Planned
            | RolloutState::AwaitingApproval
            | RolloutState::Paused
            | RolloutState::Completed
            | RolloutState::Failed
            | RolloutState::RolledBack
            | RolloutState::Cancelled => {}
        }
        Ok(seen)
    }
}

/// End of the current freeze in the project's policy; `None` outside a freeze.
pub(super) async fn freeze_end(
    tx: &mut Transaction,
    rollout: &Rollout,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    let Some(project) = rollout.tenant.project else {
        return Ok(None);
    };
    let project = tx.project(project).await?;
    Ok(project.and_then(|found| found.value.policy.rules.freezes.end(now)))
}
