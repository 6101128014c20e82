//! Webhooks: receivers of a project's events.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::refusal::faults::Faults;
use crate::access::{Access, Tenant};
use crate::named::named;
use crate::rollout::RolloutEvent;
use crate::sso::connection::{PrivateAddresses, check_url};
use crate::text::Name;
use control_wire::{SecretId, WebhookDeliveryId, WebhookId};
use jiff::{SignedDuration, Timestamp};

/// Waits after each failed attempt; the delivery fails after the last one.
const BACKOFF: [SignedDuration; 8] = [
    SignedDuration::from_secs(10),
    SignedDuration::from_mins(1),
    SignedDuration::from_mins(5),
    SignedDuration::from_mins(15),
    SignedDuration::from_mins(30),
    SignedDuration::from_hours(1),
    SignedDuration::from_hours(2),
    SignedDuration::from_hours(4),
];
/// Time after which an attempt without a result is repeated: its replica has probably crashed.
const ATTEMPT_TIMEOUT: SignedDuration = SignedDuration::from_mins(1);

named! {
    /// Event of a project that a webhook may receive.
    #[schema(as = WebhookEventName)]
    WebhookEvent {
        /// A rollout waits for another person's approval.
        RolloutAwaitingApproval = "rollout.awaiting_approval",
        /// A rollout was paused or has failed, by its gate or an operator.
        RolloutStopped = "rollout.stopped",
        /// The nodes of a rollout run their former bundle again.
        RolloutRolledBack = "rollout.rolled_back",
        /// A rollout has moved all its nodes.
        RolloutCompleted = "rollout.completed",
        /// A node differs from its order.
        DriftOpened = "drift.opened",
        /// Nodes have missed three heartbeats.
        NodeSilent = "node.silent",
    }
}

named! {
    /// State of a delivery.
    #[schema(as = WebhookDeliveryStateName)]
    WebhookDeliveryState {
        /// It waits for its next attempt.
        Pending = "pending",
        /// The receiver answered with a 2xx status.
        Delivered = "delivered",
        /// No attempt was answered so, and there is no further one.
        Failed = "failed",
    }
}

/// Receiver of a project's events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// UUID of version 7.
    pub id: WebhookId,
    /// Project with the events to deliver.
    pub tenant: Tenant,
    /// Name, unique in the project.
    pub name: Name,
    /// URL for `POST` requests: `https`, unless the installation permits private addresses.
    pub url: String,
    /// Subscribed events, in order; at least one.
    pub events: Vec<WebhookEvent>,
    /// Whether events are queued for it.
    pub enabled: bool,
    /// Sealed key of the signatures.
    pub secret: SecretId,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Settings of a webhook, as an administrator submits them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Name, unique in the project.
    pub name: String,
    /// URL for `POST` requests.
    pub url: String,
    /// Subscribed events; duplicates are ignored.
    pub events: Vec<WebhookEvent>,
    /// Whether events are queued for it.
    pub enabled: bool,
}

/// Input for a new webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewWebhook {
    /// Its identifier.
    pub id: WebhookId,
    /// Sealed key of the signatures.
    pub secret: SecretId,
    /// Settings that the administrator chose.
    pub settings: WebhookSettings,
}

/// An event queued for one webhook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDelivery {
    /// Identifier, the same in all attempts.
    pub id: WebhookDeliveryId,
    /// Webhook that receives the event.
    pub webhook: WebhookId,
    /// Name of the event; `webhook.test` for a requested test.
    pub event: String,
    /// Request body, as JSON.
    pub payload: String,
    /// State of the delivery.
    pub state: WebhookDeliveryState,
    /// Number of started attempts.
    pub attempts: i64,
    /// Time of the next attempt, while the delivery is pending.
    pub next_at: Timestamp,
    /// Status of the last response; `None` without one.
    pub last_status: Option<u16>,
    /// Reason why the last attempt failed.
    pub last_error: Option<String>,
    /// Time when the event was queued.
    pub created_at: Timestamp,
    /// Time of delivery or of the final failure.
    pub ended_at: Option<Timestamp>,
}

/// Result of one attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookAttempt {
    /// Status of the response; `None` without one.
    pub status: Option<u16>,
    /// Reason for the failure; `None` for a 2xx status.
    pub error: Option<String>,
}

impl WebhookEvent {
    /// The event that an action of the audit log causes; `None` for most actions.
    pub fn from_action(action: &str) -> Option<Self> {
        if action == "drift.opened" {
            return Some(Self::DriftOpened);
        }
        let event = RolloutEvent::from_name(action.strip_prefix("rollout.")?)?;
        match event {
            RolloutEvent::Submit => Some(Self::RolloutAwaitingApproval),
            RolloutEvent::Pause | RolloutEvent::Fail => Some(Self::RolloutStopped),
            RolloutEvent::FinishRollback => Some(Self::RolloutRolledBack),
            RolloutEvent::Complete => Some(Self::RolloutCompleted),
            RolloutEvent::Start
            | RolloutEvent::Approve
            | RolloutEvent::OpenBatch
            | RolloutEvent::OrderNodes
            | RolloutEvent::SwitchBatch
            | RolloutEvent::PassBatch
            | RolloutEvent::Resume
            | RolloutEvent::RollBack
            | RolloutEvent::RevertNodes
            | RolloutEvent::Cancel => None,
        }
    }
}

impl Webhook {
    /// Creates a webhook.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        tenant: Tenant,
        new: NewWebhook,
        addresses: PrivateAddresses,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, tenant)?;
        let NewWebhook {
            id,
            secret,
            settings,
        } = new;
        let WebhookSettings {
            name,
            url,
            mut events,
            enabled,
        } = settings;
        events.sort_unstable();
        events.dedup();
        let mut faults = Faults::default();
        let name = faults.record(Name::parse("name", &name));
        faults.record(check_url("url", &url, addresses));
        faults.check(!events.is_empty(), "events", "are none");
        Ok(Self {
            id,
            tenant,
            name: faults.finish(name)?,
            url,
            events,
            enabled,
            secret,
            created_at: now,
        })
    }

    /// Changes the webhook's settings. Its secret is kept.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn update(
        self,
        actor: &Actor,
        settings: WebhookSettings,
        addresses: PrivateAddresses,
    ) -> Result<Self, Refusal> {
        let new = NewWebhook {
            id: self.id,
            secret: self.secret,
            settings,
        };
        Self::create(actor, self.tenant, new, addresses, self.created_at)
    }

    /// The webhook with another secret.
    ///
    /// # Errors
    ///
    /// Replaces the secret.
    pub fn with_secret(self, actor: &Actor, secret: SecretId) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, self.tenant)?;
        Ok(Self { secret, ..self })
    }

    /// Checks the permission to delete the webhook or to send a test event.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_control(&self, actor: &Actor) -> Result<(), Refusal> {
        actor.require(Access::CONTROL, self.tenant)
    }
}

impl WebhookDelivery {
    /// A new delivery, due at once.
    pub fn new(
        id: WebhookDeliveryId,
        webhook: WebhookId,
        event: &str,
        payload: String,
        now: Timestamp,
    ) -> Self {
        Self {
            id,
            webhook,
            event: event.to_owned(),
            payload,
            state: WebhookDeliveryState::Pending,
            attempts: 0,
            next_at: now,
            last_status: None,
            last_error: None,
            created_at: now,
            ended_at: None,
        }
    }

    /// Starts an attempt. If its result is never recorded, the next attempt is due a minute later.
    #[must_use]
    pub fn begin(self, now: Timestamp) -> Self {
        Self {
            attempts: self.attempts.saturating_add(1),
            next_at: now
                .saturating_add(ATTEMPT_TIMEOUT)
                .unwrap_or(Timestamp::MAX),
            ..self
        }
    }

    /// Takes back an attempt that could not be made here, for the reason `error`: it is not counted,
    /// and is due again when the result of the begun one would be missed.
    #[must_use]
    pub fn withdraw(self, error: String) -> Self {
        Self {
            attempts: self.attempts.saturating_sub(1),
            last_error: Some(error),
            ..self
        }
    }

    /// Records the result of an attempt.
    #[must_use]
    pub fn end(self, attempt: WebhookAttempt, now: Timestamp) -> Self {
        let WebhookAttempt { status, error } = attempt;
        let is_delivered = error.is_none();
        let ended = usize::try_from(self.attempts.saturating_sub(1)).unwrap_or(usize::MAX);
        let wait = BACKOFF.get(ended).copied();
        let (state, next_at) = match wait {
            _ if is_delivered => (WebhookDeliveryState::Delivered, now),
            Some(wait) => {
                let next = now.saturating_add(wait).unwrap_or(Timestamp::MAX);
                (WebhookDeliveryState::Pending, next)
            }
            None => (WebhookDeliveryState::Failed, now),
        };
        Self {
            state,
            next_at,
            last_status: status,
            last_error: error,
            ended_at: (state != WebhookDeliveryState::Pending).then_some(now),
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_attempt_is_repeated_for_about_eight_hours_and_then_it_ends() {
        let start = Timestamp::UNIX_EPOCH;
        let id = WebhookDeliveryId(Uuid::nil());
        let webhook = WebhookId(Uuid::nil());
        let (event, payload) = ("rollout.completed", "{}".to_owned());
        let mut delivery = WebhookDelivery::new(id, webhook, event, payload, start);
        let mut now = start;
        let refused = WebhookAttempt {
            status: Some(503),
            error: Some("the answer has another status than 2xx".to_owned()),
        };
        while delivery.state == WebhookDeliveryState::Pending {
            now = delivery.next_at;
            delivery = delivery.begin(now);
            assert_eq!(delivery.next_at, now + ATTEMPT_TIMEOUT);
            delivery = delivery.end(refused.clone(), now);
        }
        assert_eq!(delivery.state, WebhookDeliveryState::Failed);
        assert_eq!(delivery.attempts, 9);
        let hours = now.duration_since(start).as_hours();
        assert!((7..9).contains(&hours), "{hours}");
        assert_eq!(delivery.ended_at, Some(now));
    }

    #[test]
    fn a_success_ends_it_at_once() {
        let now = Timestamp::UNIX_EPOCH;
        let id = WebhookDeliveryId(Uuid::nil());
        let webhook = WebhookId(Uuid::nil());
        let delivery = WebhookDelivery::new(id, webhook, "drift.opened", "{}".to_owned(), now);
        let answered = WebhookAttempt {
            status: Some(204),
            error: None,
        };
        let delivery = delivery.begin(now).end(answered, now);
        assert_eq!(delivery.state, WebhookDeliveryState::Delivered);
        assert_eq!((delivery.attempts, delivery.last_status), (1, Some(204)));
    }

    #[test]
    fn actions_of_the_audit_log_are_events() {
        for (action, event) in [
            ("rollout.submit", Some("rollout.awaiting_approval")),
            ("rollout.pause", Some("rollout.stopped")),
            ("rollout.fail", Some("rollout.stopped")),
            ("rollout.finish_rollback", Some("rollout.rolled_back")),
            ("rollout.complete", Some("rollout.completed")),
            ("drift.opened", Some("drift.opened")),
            ("drift.resolved", None),
            ("rollout.open_batch", None),
            ("rollout.created", None),
            ("node.silent", None),
        ] {
            let found = WebhookEvent::from_action(action).map(WebhookEvent::name);
            assert_eq!(found, event, "{action}");
        }
    }
}
