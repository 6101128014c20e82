//! Life cycle of an API key.

use control_domain::{
    API_KEY_TRANSITIONS, Actor, ApiKey, ApiKeyEvent, ApiKeyState, NewApiKey, Refusal, Role, Scope,
    Tenant, next_state,
};
use control_wire::{ApiKeyId, OrgId, ProjectId, SessionId, UserId};
use jiff::{SignedDuration, Timestamp};
use std::collections::{BTreeMap, BTreeSet};
use uuid::Uuid;

const ORG: OrgId = OrgId(Uuid::from_u128(1));
const PROJECT: ProjectId = ProjectId(Uuid::from_u128(2));
const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn admin() -> Actor {
    Actor::User {
        id: UserId(Uuid::from_u128(3)),
        session: SessionId(Uuid::from_u128(4)),
        instance_admin: false,
        roles: BTreeMap::from([(ORG, Role::Admin)]),
        project_roles: BTreeMap::new(),
        locked: BTreeSet::new(),
        is_fresh: true,
        owns_account: true,
    }
}

fn after(hours: i64) -> Timestamp {
    NOW + SignedDuration::from_hours(hours)
}

fn create(
    actor: &Actor,
    tenant: Tenant,
    scopes: &[Scope],
    hours: Option<i64>,
) -> Result<ApiKey, Refusal> {
    let new = NewApiKey {
        name: "deploy".to_owned(),
        scopes: scopes.iter().copied().collect(),
        expires_at: hours.map(after),
    };
    ApiKey::create(actor, tenant, ApiKeyId(Uuid::from_u128(5)), new, NOW)
}

#[test]
fn every_state_and_event_is_decided_by_one_row_or_refused() {
    for &state in ApiKeyState::ALL {
        for &event in ApiKeyEvent::ALL {
            let rows = API_KEY_TRANSITIONS
                .iter()
                .filter(|row| (row.from, row.event) == (state, event));
            assert!(rows.count() <= 1, "{state} has two rows for {event}");
        }
    }
    let next = |state, event| next_state(API_KEY_TRANSITIONS, state, event);
    assert_eq!(
        next(ApiKeyState::Active, ApiKeyEvent::Revoke),
        Some(ApiKeyState::Revoked)
    );
    assert_eq!(next(ApiKeyState::Active, ApiKeyEvent::Delete), None);
    assert_eq!(next(ApiKeyState::Deleted, ApiKeyEvent::Revoke), None);
}

#[test]
fn a_key_is_revoked_and_then_deleted() {
    let key = create(&admin(), Tenant::org(ORG), &[], None).unwrap();
    let wrong_state = |result: Result<(), Refusal>| {
        assert!(matches!(result, Err(Refusal::WrongState { .. })));
    };
    wrong_state(key.check_delete(&admin(), NOW));
    assert!(key.clone().accept(NOW).is_ok());
    let revoked = key.revoke(&admin(), NOW).unwrap();
    assert_eq!(revoked.clone().accept(NOW), Err(Refusal::Ended));
    wrong_state(revoked.clone().revoke(&admin(), NOW).map(drop));
    assert_eq!(revoked.check_delete(&admin(), NOW), Ok(()));
}

#[test]
fn a_key_expires_by_itself() {
    let key = create(&admin(), Tenant::org(ORG), &[], Some(1)).unwrap();
    assert_eq!(key.state(after(0)), ApiKeyState::Active);
    assert_eq!(key.state(after(1)), ApiKeyState::Expired);
    assert_eq!(key.accept(after(1)), Err(Refusal::Ended));
    let past = create(&admin(), Tenant::org(ORG), &[], Some(0));
    assert!(matches!(
        past,
        Err(Refusal::Invalid {
            field: "expires_at",
            ..
        })
    ));
}

#[test]
fn a_key_makes_no_key_with_more_than_it_has() {
    use Scope::{ApiKeysAdmin, NodesRead, NodesWrite};
    const MORE_SCOPES: Result<(), Refusal> = Err(Refusal::MoreThanOwn("scopes"));
    const MORE_TIME: Result<(), Refusal> = Err(Refusal::MoreThanOwn("time"));
    let (org, project) = (Tenant::org(ORG), Tenant::project(ORG, PROJECT));
    let cases: [(_, &[Scope], _, _, &[Scope], _, _); 11] = [
        (org, &[], None, org, &[], None, Ok(())),
        (org, &[], None, project, &[NodesRead], Some(1), Ok(())),
        (
            org,
            &[ApiKeysAdmin, NodesRead],
            None,
            org,
            &[NodesRead],
            None,
            Ok(()),
        ),
        (
            org,
            &[ApiKeysAdmin, NodesRead],
            None,
            org,
            &[NodesWrite],
            None,
            MORE_SCOPES,
        ),
        (
            org,
            &[ApiKeysAdmin, NodesRead],
            None,
            org,
            &[],
            None,
            MORE_SCOPES,
        ),
        (org, &[], Some(2), org, &[], Some(2), Ok(())),
        (org, &[], Some(2), org, &[], Some(3), MORE_TIME),
        (org, &[], Some(2), org, &[], None, MORE_TIME),
        (project, &[], None, project, &[], None, Ok(())),
        (
            project,
            &[],
            None,
            org,
            &[],
            None,
            Err(Refusal::LimitedToProject),
        ),
        (
            project,
            &[],
            None,
            Tenant::project(ORG, ProjectId(Uuid::from_u128(9))),
            &[],
            None,
            Err(Refusal::NotFound),
        ),
    ];
    for (tenant, scopes, hours, new_tenant, new_scopes, new_hours, expected) in cases {
        let own = create(&admin(), tenant, scopes, hours).unwrap();
        let actor = own.accept(NOW).unwrap();
        let made = create(&actor, new_tenant, new_scopes, new_hours).map(drop);
        assert_eq!(
            made, expected,
            "{scopes:?} {hours:?} makes {new_scopes:?} {new_hours:?}"
        );
    }
}

#[test]
fn only_admins_and_keys_with_the_scope_manage_keys() {
    let operator = Actor::User {
        id: UserId(Uuid::from_u128(3)),
        session: SessionId(Uuid::from_u128(4)),
        instance_admin: true,
        roles: BTreeMap::from([(ORG, Role::Operator)]),
        project_roles: BTreeMap::new(),
        locked: BTreeSet::new(),
        is_fresh: true,
        owns_account: true,
    };
    let refused = create(&operator, Tenant::org(ORG), &[], None);
    assert_eq!(refused, Err(Refusal::LowerRole(Role::Admin)));
    let reader = create(&admin(), Tenant::org(ORG), &[Scope::NodesRead], None).unwrap();
    let reader = reader.accept(NOW).unwrap();
    let refused = create(&reader, Tenant::org(ORG), &[Scope::NodesRead], None);
    assert!(matches!(refused, Err(Refusal::MissingScope(_))));
    let scopes = BTreeSet::from([Scope::NodesRead]);
    assert!(matches!(reader, Actor::ApiKey { scopes: own, .. } if own == scopes));
}
