//! Rows of resources, on both databases.

use crate::stores::{NOW, api_key, org, project, signing_key, stores, user};
use control_auth::Sealed;
use control_domain::{Membership, Name, Role, Scope, Session, SessionOrigin, SetupLink, Tenant};
use control_store::{ListFilter, Page, PageOrder, StoreError, StoredSecret, Versioned};
use control_wire::{SecretId, SessionId};
use std::collections::BTreeMap;
use uuid::Uuid;

const ALL: Page = Page {
    after: None,
    limit: 10,
    order: PageOrder::Oldest,
};

#[tokio::test]
async fn of_two_writers_one_is_stale() {
    for store in stores().await {
        let (org, project) = (org("a"), project(&org("a"), "edge"));
        let mut tx = store.begin().await.unwrap();
        tx.insert_org(&org).await.unwrap();
        tx.insert_project(&project).await.unwrap();
        tx.commit().await.unwrap();

        let mut tx = store.begin().await.unwrap();
        let renamed = control_domain::Project {
            name: Name::stored("core".to_owned()),
            ..project.clone()
        };
        let stale = tx.update_project(&renamed, 7).await;
        assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
        assert_eq!(tx.update_project(&renamed, 1).await.unwrap(), 2);
        let found = tx.project(project.id).await.unwrap();
        let expected = Versioned {
            value: renamed,
            version: 2,
        };
        assert_eq!(found, Some(expected));
    }
}

#[tokio::test]
async fn uncommitted_changes_are_lost() {
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        tx.insert_org(&org("a")).await.unwrap();
        drop(tx);
        let mut tx = store.read().await.unwrap();
        assert_eq!(tx.org(org("a").id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn names_are_unique_where_they_must_be() {
    for store in stores().await {
        let (one, two) = (org("one"), org("two"));
        let mut tx = store.begin().await.unwrap();
        tx.insert_org(&one).await.unwrap();
        tx.insert_org(&two).await.unwrap();
        tx.insert_project(&project(&one, "edge")).await.unwrap();
        tx.insert_project(&project(&two, "edge")).await.unwrap();
        tx.commit().await.unwrap();
        let mut tx = store.begin().await.unwrap();
        let twin = control_domain::Project {
            id: control_wire::ProjectId(Uuid::from_u128(99)),
            ..project(&one, "edge")
        };
        let taken = tx.insert_project(&twin).await;
        assert!(matches!(taken, Err(StoreError::Conflict)), "{taken:?}");
    }
}

#[tokio::test]
async fn a_row_without_its_parent_is_refused() {
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        let orphan = tx.insert_project(&project(&org("a"), "edge")).await;
        assert!(matches!(orphan, Err(StoreError::Reference)), "{orphan:?}");
    }
}

#[tokio::test]
async fn pages_follow_each_other() {
    for store in stores().await {
        let (org, mut tx) = (org("a"), store.begin().await.unwrap());
        tx.insert_org(&org).await.unwrap();
        let mut all = Vec::new();
        for name in ["a", "b", "c"] {
            let project = project(&org, name);
            tx.insert_project(&project).await.unwrap();
            all.push(project.id);
        }
        all.sort_unstable();
        let (mut after, mut seen) = (None, Vec::new());
        loop {
            let page = Page {
                after,
                limit: 2,
                order: PageOrder::Oldest,
            };
            let found = tx
                .projects(org.id, None, &ListFilter::default(), page)
                .await
                .unwrap();
            let Some(last) = found.last() else { break };
            after = Some(last.value.id.0);
            seen.extend(found.iter().map(|project| project.value.id));
        }
        assert_eq!(seen, all);
        let one = tx
            .projects(org.id, Some(all[1]), &ListFilter::default(), ALL)
            .await
            .unwrap();
        assert_eq!(one.len(), 1);
    }
}

#[tokio::test]
async fn a_deleted_project_takes_its_keys_along() {
    for store in stores().await {
        let (org, mut tx) = (org("a"), store.begin().await.unwrap());
        let project = project(&org, "edge");
        tx.insert_org(&org).await.unwrap();
        tx.insert_project(&project).await.unwrap();
        let key = api_key(project.tenant(), &[Scope::NodesRead]);
        tx.insert_api_key(&key, "hash").await.unwrap();
        assert!(!tx.has_nodes(project.id).await.unwrap());
        tx.delete_project(project.id, 1).await.unwrap();
        assert_eq!(tx.api_key(key.id).await.unwrap(), None);
    }
}

#[tokio::test]
async fn a_stored_api_key_is_read_unchanged() {
    for store in stores().await {
        let (org, mut tx) = (org("a"), store.begin().await.unwrap());
        tx.insert_org(&org).await.unwrap();
        let tenant = Tenant::org(org.id);
        let mut key = api_key(tenant, &[Scope::NodesRead, Scope::ApiKeysAdmin]);
        key.expires_at = Some(NOW);
        tx.insert_api_key(&key, "hash").await.unwrap();
        let found = tx.api_key_by_secret("hash").await.unwrap();
        assert_eq!(found, Some(Versioned::new(key.clone())));
        assert_eq!(tx.api_key_by_secret("other").await.unwrap(), None);

        key.revoked_at = Some(NOW);
        assert_eq!(tx.update_api_key(&key, 1).await.unwrap(), 2);
        let listed = tx
            .api_keys(org.id, None, &ListFilter::default(), ALL)
            .await
            .unwrap();
        assert_eq!(listed.len(), 1);
        assert_eq!(listed[0].value, key);
        tx.delete_api_key(key.id, 2).await.unwrap();
        assert!(
            tx.api_keys(org.id, None, &ListFilter::default(), ALL)
                .await
                .unwrap()
                .is_empty()
        );
    }
}

#[tokio::test]
async fn a_user_has_roles_and_sessions() {
    for store in stores().await {
        let (org, user, mut tx) = (
            org("a"),
            user("ann@example.com"),
            store.begin().await.unwrap(),
        );
        assert!(tx.has_no_users().await.unwrap());
        tx.insert_org(&org).await.unwrap();
        tx.insert_user(&user).await.unwrap();
        assert!(!tx.has_no_users().await.unwrap());
        assert_eq!(
            tx.user(user.id).await.unwrap(),
            Some(Versioned::new(user.clone()))
        );
        let membership = Membership {
            org: org.id,
            user: user.id,
            role: Role::Operator,
            created_at: NOW,
        };
        tx.insert_membership(membership).await.unwrap();
        let roles = BTreeMap::from([(org.id, Role::Operator)]);
        assert_eq!(tx.roles(user.id).await.unwrap(), roles);
        let orgs = tx
            .orgs_of_user(user.id, &ListFilter::default(), ALL)
            .await
            .unwrap();
        assert_eq!(orgs, [Versioned::new(org)]);

        let session = Session::start(
            SessionId(Uuid::from_u128(5)),
            user.id,
            SessionOrigin::default(),
            NOW,
        );
        tx.insert_session(&session, "hash").await.unwrap();
        assert_eq!(
            tx.session_by_secret("hash").await.unwrap(),
            Some(session.clone())
        );
        let later = NOW + jiff::SignedDuration::from_secs(1);
        tx.see_session(session.id, later).await.unwrap();
        tx.revoke_session(session.id, later).await.unwrap();
        let ended = Session {
            seen_at: later,
            revoked_at: Some(later),
            ..session
        };
        assert_eq!(tx.session_by_secret("hash").await.unwrap(), Some(ended));
    }
}

#[tokio::test]
async fn a_setup_link_is_spent_once_and_replaces_the_one_before() {
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        let link = |id| SetupLink {
            id: Uuid::from_u128(id),
            created_at: NOW,
        };
        tx.replace_setup_link(link(1), "one").await.unwrap();
        tx.replace_setup_link(link(2), "two").await.unwrap();
        assert_eq!(tx.setup_link_by_secret("one").await.unwrap(), None);
        assert_eq!(tx.setup_link_by_secret("two").await.unwrap(), Some(link(2)));
        tx.spend_setup_link(link(2).id).await.unwrap();
        let again = tx.spend_setup_link(link(2).id).await;
        assert!(matches!(again, Err(StoreError::Stale)), "{again:?}");
    }
}

#[tokio::test]
async fn an_organization_signs_with_one_key() {
    for store in stores().await {
        let (org, mut tx) = (org("a"), store.begin().await.unwrap());
        tx.insert_org(&org).await.unwrap();
        let secret = StoredSecret {
            id: SecretId(Uuid::from_u128(7)),
            org: Some(org.id),
            sealed: Sealed {
                master_key: "k1".to_owned(),
                text: "sealed".to_owned(),
            },
            created_at: NOW,
        };
        tx.insert_secret(&secret).await.unwrap();
        assert_eq!(tx.secret(secret.id).await.unwrap(), Some(secret.clone()));
        let old = tx.secrets_not_sealed_with("k2", 10).await.unwrap();
        assert_eq!(old, std::slice::from_ref(&secret));
        let sealed = Sealed {
            master_key: "k2".to_owned(),
            text: "again".to_owned(),
        };
        tx.reseal_secret(secret.id, &sealed).await.unwrap();
        assert!(
            tx.secrets_not_sealed_with("k2", 10)
                .await
                .unwrap()
                .is_empty()
        );

        let key = signing_key(org.id, secret.id);
        tx.insert_signing_key(&key).await.unwrap();
        let active = tx.active_signing_key(org.id).await.unwrap();
        assert_eq!(active, Some(Versioned::new(key.clone())));
        let found = tx.signing_key(key.id).await.unwrap();
        assert_eq!(found, active);
        let second = control_domain::SigningKey {
            id: control_wire::SigningKeyId(Uuid::from_u128(12)),
            ..key
        };
        let twice = tx.insert_signing_key(&second).await;
        assert!(matches!(twice, Err(StoreError::Conflict)), "{twice:?}");
    }
}

#[tokio::test]
async fn an_unknown_scope_does_not_give_full_access() {
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        tx.insert_org(&org("a")).await.unwrap();
        let full = api_key(Tenant::org(org("a").id), &[]);
        tx.insert_api_key(&full, "hash").await.unwrap();
        tx.commit().await.unwrap();
        store
            .tamper("UPDATE api_keys SET scopes = 'nodes:fly'")
            .await;
        let mut tx = store.read().await.unwrap();
        let read = tx.api_key_by_secret("hash").await;
        assert!(
            matches!(read, Err(StoreError::Corrupt("scopes"))),
            "{read:?}"
        );
    }
}
