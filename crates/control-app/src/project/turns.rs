//! Fair scheduling of webhook deliveries: slots for concurrent deliveries, granted to organizations
//! in turn.
//!
//! A receiver that does not answer occupies a slot for ten seconds, again and again. Each
//! organization is therefore limited to some of the slots, and a free slot goes to the organization
//! that holds the fewest.

use control_store::DueWebhook;
use control_wire::{OrgId, WebhookId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of webhooks with concurrent deliveries.
const MAX_PLACES: usize = 32;
/// Maximum number of slots per organization.
const MAX_PLACES_OF_ORG: usize = 8;
/// Maximum number of slots, of all organizations together, beyond the first of each: the rest stays
/// free for organizations without one.
const MAX_FURTHER_PLACES: usize = 16;

/// Delivery slots of this process, and the history that decides on the next one.
#[derive(Debug, Default)]
pub struct DeliveryTurns {
    /// Webhooks that hold a slot.
    held: Vec<DueWebhook>,
    /// Number of the last turn of each organization with a due delivery.
    orgs: BTreeMap<OrgId, u64>,
    webhooks: BTreeMap<WebhookId, u64>,
    turns: u64,
}

impl DeliveryTurns {
    /// Grants free slots to webhooks of `due` without one: first to the organization that holds the
    /// fewest slots; ties go to the organization, and within it to the webhook, served longest ago.
    pub fn take(&mut self, due: &[DueWebhook]) -> Vec<WebhookId> {
        self.forget_all_but(due);
        let mut free: Vec<&DueWebhook> =
            due.iter().filter(|one| !self.held.contains(one)).collect();
        // The sort is stable: webhooks never served stay first, in the order of their waiting time.
        free.sort_by_key(|one| self.webhooks.get(&one.webhook).copied());
        let mut waiting = BTreeMap::<OrgId, VecDeque<WebhookId>>::new();
        for DueWebhook { org, webhook } in free {
            waiting.entry(*org).or_default().push_back(*webhook);
        }
        let mut taken = Vec::new();
        while let Some(org) = self.next(waiting.keys()) {
            let Some(webhook) = waiting.get_mut(&org).and_then(VecDeque::pop_front) else {
                waiting.remove(&org);
                continue;
            };
            self.turns += 1;
            self.orgs.insert(org, self.turns);
            self.webhooks.insert(webhook, self.turns);
            self.held.push(DueWebhook { org, webhook });
            taken.push(webhook);
        }
        taken
    }

    /// Releases the slot of a webhook.
    pub fn leave(&mut self, webhook: WebhookId) {
        self.held.retain(|held| held.webhook != webhook);
    }

    /// The organization that gets the next slot.
    fn next<'a>(&self, waiting: impl Iterator<Item = &'a OrgId>) -> Option<OrgId> {
        if MAX_PLACES <= self.held.len() {
            return None;
        }
        let owners: BTreeSet<OrgId> = self.held.iter().map(|held| held.org).collect();
        let further = self.held.len() - owners.len();
        let ranked = waiting.filter_map(|org| {
            let held = self.held.iter().filter(|held| held.org == *org).count();
            let may = held == 0 || held < MAX_PLACES_OF_ORG && further < MAX_FURTHER_PLACES;
            may.then(|| (held, self.orgs.get(org).copied(), *org))
        });
        ranked.min().map(|(.., org)| org)
    }

    fn forget_all_but(&mut self, due: &[DueWebhook]) {
        let known = || due.iter().chain(&self.held);
        let orgs: BTreeSet<OrgId> = known().map(|one| one.org).collect();
        let webhooks: BTreeSet<WebhookId> = known().map(|one| one.webhook).collect();
        self.orgs.retain(|org, _| orgs.contains(org));
        self.webhooks
            .retain(|webhook, _| webhooks.contains(webhook));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn due(org: u128, webhook: u128) -> DueWebhook {
        DueWebhook {
            org: OrgId(Uuid::from_u128(org)),
            webhook: WebhookId(Uuid::from_u128(webhook)),
        }
    }

    fn webhook(number: u128) -> WebhookId {
        WebhookId(Uuid::from_u128(number))
    }

    #[test]
    fn an_organization_with_many_hanging_receivers_leaves_places_to_others() {
        let mut turns = DeliveryTurns::default();
        let mut all: Vec<DueWebhook> = (0..40).map(|number| due(1, number)).collect();
        assert_eq!(turns.take(&all).len(), MAX_PLACES_OF_ORG);
        all.push(due(2, 100));
        assert_eq!(turns.take(&all), [webhook(100)]);
        assert!(
            turns.take(&all).is_empty(),
            "each of them holds what it may"
        );
        // Two more take the free further places, and one remains for each newcomer.
        all.extend((200..240).map(|number| due(3, number)));
        all.extend((300..340).map(|number| due(4, number)));
        let taken = turns.take(&all).len();
        assert_eq!(taken, 2 + MAX_FURTHER_PLACES - (MAX_PLACES_OF_ORG - 1));
        all.extend((5..10).map(|org| due(org, 1000 + org)));
        assert_eq!(turns.take(&all).len(), 5);
    }

    #[test]
    fn a_free_place_is_for_the_one_that_was_served_longest_ago() {
        let mut turns = DeliveryTurns::default();
        let all: Vec<DueWebhook> = (0..20).map(|number| due(1, number)).collect();
        let mut order = Vec::new();
        for _ in 0..4 {
            let taken = turns.take(&all);
            for webhook in &taken {
                turns.leave(*webhook);
            }
            order.extend(taken);
        }
        let expected: Vec<WebhookId> = (0..32).map(|turn| webhook(turn % 20)).collect();
        assert_eq!(order, expected, "the healthy one of its own is served too");
    }

    #[test]
    fn more_organizations_than_places_take_turns() {
        let mut turns = DeliveryTurns::default();
        let all: Vec<DueWebhook> = (0..48).map(|org| due(org, org)).collect();
        let first = turns.take(&all);
        assert_eq!(first.len(), MAX_PLACES);
        for webhook in &first {
            turns.leave(*webhook);
        }
        let second = turns.take(&all);
        let new = second.iter().filter(|webhook| !first.contains(webhook));
        assert_eq!(new.count(), 16);
        assert!(turns.take(&[]).is_empty());
        assert_eq!(
            turns.orgs.len(),
            32,
            "those without a delivery are forgotten"
        );
    }
}
