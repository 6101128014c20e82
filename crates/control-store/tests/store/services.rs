//! Rows of bundles and their inputs, on both databases.

use crate::stores::{NOW, TestStore, org, project, signing_key, stores};
use control_auth::Sealed;
use control_domain::{
    Bundle, BundleArchive, BundleSignature, BundleState, Certificate, CertificateFacts, Labels,
    LoadBalancing, Name, Service, Target, Tenant, Upstream, UpstreamTls,
};
use control_store::{
    BundleFilter, ListFilter, Page, PageOrder, ServiceFilter, StoreError, StoredSecret, Transaction,
};
use control_wire::{BundleId, CertificateId, SecretId, ServiceId, UpstreamId};
use uuid::Uuid;

const ALL: Page = Page {
    after: None,
    limit: 10,
    order: PageOrder::Oldest,
};
const SECRET: SecretId = SecretId(Uuid::from_u128(10));

fn upstream(tenant: Tenant, id: u128, addresses: &[&str]) -> Upstream {
    let target = |address: &&str| Target {
        address: (*address).to_owned(),
        weight: 2,
    };
    Upstream {
        id: UpstreamId(Uuid::from_u128(id)),
        tenant,
        name: Name::stored(id.to_string()),
        load_balancing: LoadBalancing::IpHash,
        targets: addresses.iter().map(target).collect(),
        tls: Some(UpstreamTls { server_name: None }),
        settings: "{\"protocol\":\"h2\"}".to_owned(),
        created_at: NOW,
    }
}

fn certificate(tenant: Tenant) -> Certificate {
    Certificate {
        id: CertificateId(Uuid::from_u128(20)),
        tenant,
        name: Name::stored("a".to_owned()),
        facts: CertificateFacts {
            hosts: vec!["a.example.com".to_owned(), "b.example.com".to_owned()],
            not_before: NOW,
            not_after: NOW,
            fingerprint: "00".to_owned(),
        },
        node_labels: Labels::default(),
        chain_pem: "chain".to_owned(),
        secret: SECRET,
        created_at: NOW,
    }
}

fn service(tenant: Tenant, upstream: &Upstream) -> Service {
    Service {
        id: ServiceId(Uuid::from_u128(30)),
        tenant,
        name: Name::stored("a".to_owned()),
        host: Some("a.example.com".to_owned()),
        path_prefix: None,
        priority: -5,
        upstream: upstream.id,
        certificate: None,
        settings: "{\"policies\":{}}".to_owned(),
        created_at: NOW,
    }
}

/// Begins a transaction with a project, a sealed secret and a signing key.
async fn begin(store: &TestStore) -> (Transaction, Tenant) {
    let (org, mut tx) = (org("a"), store.begin().await.unwrap());
    let project = project(&org, "edge");
    tx.insert_org(&org).await.unwrap();
    tx.insert_project(&project).await.unwrap();
    let secret = StoredSecret {
        id: SECRET,
        org: Some(org.id),
        sealed: Sealed {
            master_key: "m".to_owned(),
            text: "sealed".to_owned(),
        },
        created_at: NOW,
    };
    tx.insert_secret(&secret).await.unwrap();
    tx.insert_signing_key(&signing_key(org.id, SECRET))
        .await
        .unwrap();
    (tx, project.tenant())
}

#[tokio::test]
async fn an_upstream_keeps_its_targets_in_order() {
    for store in stores().await {
        let (mut tx, tenant) = begin(&store).await;
        let one = upstream(tenant, 1, &["b:80", "a:80", "c:80"]);
        let two = upstream(tenant, 2, &["d:80"]);
        tx.insert_upstream(&one).await.unwrap();
        tx.insert_upstream(&two).await.unwrap();
        let found = tx.upstream(one.id).await.unwrap().unwrap();
        assert_eq!(found.value, one);
        let project = tenant.project.unwrap();
        let first = Page {
            after: None,
            limit: 1,
            order: PageOrder::Oldest,
        };
        let page = tx
            .upstreams(project, &ListFilter::default(), first)
            .await
            .unwrap();
        assert_eq!(page.len(), 1);
        assert_eq!(page[0].value, one);
        let second = Page {
            after: Some(one.id.0),
            limit: 5,
            order: PageOrder::Oldest,
        };
        assert_eq!(
            tx.upstreams(project, &ListFilter::default(), second)
                .await
                .unwrap()[0]
                .value,
            two
        );
        let changed = Upstream {
            tls: None,
            ..upstream(tenant, 1, &["z:80"])
        };
        let stale = tx.update_upstream(&changed, 9).await;
        assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
        assert_eq!(tx.update_upstream(&changed, 1).await.unwrap(), 2);
        let found = tx.upstream(one.id).await.unwrap().unwrap();
        assert_eq!(found.value, changed);
    }
}

#[tokio::test]
async fn a_service_holds_its_upstream_and_certificate() {
    for store in stores().await {
        let (mut tx, tenant) = begin(&store).await;
        let (upstream, certificate) = (upstream(tenant, 1, &["a:80"]), certificate(tenant));
        tx.insert_upstream(&upstream).await.unwrap();
        tx.insert_certificate(&certificate).await.unwrap();
        let found = tx.certificate(certificate.id).await.unwrap().unwrap();
        assert_eq!(found.value, certificate);
        let plain = service(tenant, &upstream);
        tx.insert_service(&plain).await.unwrap();
        let secure = Service {
            certificate: Some(certificate.id),
            ..plain
        };
        assert_eq!(tx.update_service(&secure, 1).await.unwrap(), 2);
        let found = tx.service(secure.id).await.unwrap().unwrap();
        assert_eq!((found.value, found.version), (secure.clone(), 2));
        assert!(tx.upstream_in_use(upstream.id).await.unwrap());
        assert!(tx.certificate_in_use(certificate.id).await.unwrap());
        tx.commit().await.unwrap();

        let mut tx = store.begin().await.unwrap();
        let held = tx.delete_upstream(upstream.id, 1).await;
        assert!(matches!(held, Err(StoreError::Reference)), "{held:?}");
        drop(tx);
        let mut tx = store.begin().await.unwrap();
        tx.delete_service(secure.id, 2).await.unwrap();
        tx.delete_upstream(upstream.id, 1).await.unwrap();
        tx.delete_certificate(certificate.id, 1).await.unwrap();
        assert_eq!(
            tx.services(tenant.project.unwrap(), &ServiceFilter::default(), ALL)
                .await
                .unwrap(),
            []
        );
    }
}

#[tokio::test]
async fn a_bundle_is_stored_unchanged() {
    for store in stores().await {
        let (mut tx, tenant) = begin(&store).await;
        let rejected = Bundle {
            id: BundleId(Uuid::from_u128(40)),
            tenant,
            name: Name::stored("edge".to_owned()),
            state: BundleState::Rejected,
            archive: None,
            signature: None,
            diagnostics: "[]".to_owned(),
            warnings: None,
            created_at: NOW,
            revoked_at: None,
        };
        let key = signing_key(tenant.org, SECRET);
        let signed = Bundle {
            id: BundleId(Uuid::from_u128(41)),
            state: BundleState::Signed,
            warnings: Some(3),
            archive: Some(BundleArchive {
                digest: "digest".to_owned(),
                size_bytes: 7,
            }),
            signature: Some(BundleSignature {
                kid: key.id,
                text: "signature".to_owned(),
                signed_at: NOW,
            }),
            ..rejected.clone()
        };
        for bundle in [&rejected, &signed] {
            tx.insert_bundle(bundle).await.unwrap();
            let found = tx.bundle(bundle.id).await.unwrap().unwrap();
            assert_eq!(&found.value, bundle);
        }
        let project = tenant.project.unwrap();
        let state = Some(BundleState::Signed);
        let only = BundleFilter {
            state,
            ..BundleFilter::default()
        };
        let found = tx.bundles(project, &only, ALL).await.unwrap();
        assert_eq!(found.len(), 1);
        let all = tx.bundles(project, &BundleFilter::default(), ALL).await;
        assert_eq!(all.unwrap().len(), 2);
        let revoked = Bundle {
            state: BundleState::Revoked,
            revoked_at: Some(NOW),
            ..signed
        };
        assert_eq!(tx.update_bundle(&revoked, 1).await.unwrap(), 2);
        let stale = tx.update_bundle(&revoked, 1).await;
        assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
        let found = tx.bundle(revoked.id).await.unwrap().unwrap();
        assert_eq!(found.value, revoked);
    }
}
