//! Life cycle of a bundle.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use control_domain::{
    Actor, BUNDLE_TRANSITIONS, Bundle, BundleArchive, BundleEvent, BundleSignature, BundleState,
    Refusal, Role, Tenant, next_state,
};
use control_wire::{BundleId, OrgId, ProjectId, SessionId, SigningKeyId, UserId};
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(Uuid::from_u128(2));
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn user(role: Role) -> Actor {
    Actor::User {
        id: UserId(Uuid::from_u128(3)),
        session: SessionId(Uuid::from_u128(4)),
        instance_admin: false,
        roles: BTreeMap::from([(ORG, role)]),
        project_roles: BTreeMap::new(),
        locked: BTreeSet::new(),
        is_fresh: true,
        owns_account: true,
    }
}

fn draft() -> Bundle {
    let tenant = Tenant::project(ORG, PROJECT);
    let id = BundleId(Uuid::from_u128(5));
    Bundle::create(&user(Role::Operator), tenant, id, "edge", NOW).unwrap()
}

/// Creates a bundle in `state`.
fn bundle(state: BundleState) -> Bundle {
    let archive = BundleArchive {
        digest: "digest".to_owned(),
        size_bytes: 1,
    };
    Bundle {
        state,
        archive: Some(archive),
        ..draft()
    }
}

/// Applies an event. An assignment does not change the bundle.
fn apply(bundle: Bundle, event: BundleEvent, actor: &Actor) -> Result<Bundle, Refusal> {
    let archive = BundleArchive {
        digest: "digest".to_owned(),
        size_bytes: 1,
    };
    let signature = BundleSignature {
        kid: SigningKeyId(Uuid::from_u128(6)),
        text: "signature".to_owned(),
        signed_at: NOW,
    };
    match event {
        BundleEvent::Validate => bundle.validate(archive, String::new(), 0),
        BundleEvent::Reject => bundle.reject(String::new()),
        BundleEvent::Sign => bundle.sign(signature),
        BundleEvent::Assign => bundle.assign(actor).map(|_| bundle.clone()),
        BundleEvent::Revoke => bundle.revoke(actor, NOW),
    }
}

#[test]
fn every_verb_does_what_its_row_says() {
    for &state in BundleState::ALL {
        for &event in BundleEvent::ALL {
            let rows = BUNDLE_TRANSITIONS
                .iter()
                .filter(|row| (row.from, row.event) == (state, event));
            assert!(rows.count() <= 1, "{state} has two rows for {event}");
            let done = apply(bundle(state), event, &user(Role::Operator));
            let next = next_state(BUNDLE_TRANSITIONS, state, event);
            assert_eq!(
                done.ok().map(|bundle| bundle.state),
                next,
                "{state} {event}"
            );
        }
    }
}

#[test]
fn every_state_is_reached_and_only_a_signed_bundle_is_assigned() {
    let mut reached = BTreeSet::from([BundleState::Draft]);
    for _ in BundleState::ALL {
        for row in BUNDLE_TRANSITIONS {
            if reached.contains(&row.from) {
                reached.insert(row.to);
            }
        }
    }
    assert_eq!(reached.len(), BundleState::ALL.len());
    let assigned = BUNDLE_TRANSITIONS
        .iter()
        .filter(|row| row.event == BundleEvent::Assign);
    let states: Vec<BundleState> = assigned.map(|row| row.from).collect();
    assert_eq!(states, [BundleState::Signed]);
}

#[test]
fn a_reader_changes_no_bundle() {
    let reader = user(Role::Reader);
    let refused = Err(Refusal::LowerRole(Role::Operator));
    let tenant = Tenant::project(ORG, PROJECT);
    let id = BundleId(Uuid::from_u128(5));
    assert_eq!(Bundle::create(&reader, tenant, id, "edge", NOW), refused);
    let signed = bundle(BundleState::Signed);
    assert_eq!(signed.clone().revoke(&reader, NOW), refused);
    assert_eq!(
        signed.assign(&reader).map(drop),
        Err(Refusal::LowerRole(Role::Operator))
    );
}
