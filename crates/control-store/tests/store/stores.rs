//! Empty stores on both databases, and values to store.

use control_auth::SigningPair;
use control_domain::{
    ApiKey, Email, EnrolmentToken, Labels, Name, Node, Org, Project, ProjectPolicy, Scope,
    SigningKey, SigningKeyState, Tenant, User,
};
use control_store::{Store, StoreError};
use control_testkit::{Database, databases};
use control_wire::{
    ApiKeyId, EnrolmentTokenId, NodeId, OrgId, ProjectId, SecretId, SigningKeyId, UserId,
};
use jiff::Timestamp;
use sqlx::{AnyConnection, Connection, Executor};
use std::ops::Deref;
use uuid::Uuid;

pub(crate) const NOW: Timestamp = Timestamp::constant(1_700_000_000, 0);

/// A store, and the database that it needs.
pub(crate) struct TestStore {
    store: Store,
    pub(crate) database: Database,
}

impl Deref for TestStore {
    type Target = Store;

    fn deref(&self) -> &Store {
        &self.store
    }
}

impl TestStore {
    async fn open(database: Database) -> Self {
        let store = Store::open(&database.url).await.unwrap();
        Self { store, database }
    }

    /// Adds a bundle of the only project; its ID consists of zeros.
    pub(crate) async fn add_bundle(&self) {
        let sql = "INSERT INTO bundles (id, org_id, project_id, name, state, diagnostics,
                     created_at, version)
                   SELECT '00000000-0000-0000-0000-000000000000', org_id, id, 'b', 'signed', '[]',
                     0, 1 FROM projects";
        self.tamper(sql).await;
    }

    /// Runs a statement outside of the store, as an intruder would.
    pub(crate) async fn tamper(&self, sql: &'static str) {
        let mut connection = AnyConnection::connect(&self.database.url).await.unwrap();
        connection.execute(sql).await.unwrap();
    }
}

/// Creates an empty store on each database.
pub(crate) async fn stores() -> Vec<TestStore> {
    let mut stores = Vec::new();
    for database in databases() {
        stores.push(TestStore::open(database).await);
    }
    stores
}

pub(crate) fn org(name: &str) -> Org {
    Org {
        id: OrgId(id_from_name(name)),
        name: Name::stored(name.to_owned()),
        created_at: NOW,
    }
}

pub(crate) fn project(org: &Org, name: &str) -> Project {
    Project {
        id: ProjectId(id_from_name(&format!("{} {name}", org.name))),
        org: org.id,
        name: Name::stored(name.to_owned()),
        policy: ProjectPolicy::default(),
        created_at: NOW,
    }
}

pub(crate) fn user(email: &str) -> User {
    User {
        id: UserId(id_from_name(email)),
        email: Email::stored(email.to_owned()),
        name: Name::stored("Ann".to_owned()),
        password: None,
        instance_admin: true,
        created_at: NOW,
    }
}

pub(crate) fn api_key(tenant: Tenant, scopes: &[Scope]) -> ApiKey {
    ApiKey {
        id: ApiKeyId(Uuid::from_u128(1)),
        tenant,
        name: Name::stored("deploy".to_owned()),
        scopes: scopes.iter().copied().collect(),
        created_at: NOW,
        expires_at: None,
        revoked_at: None,
        made_by: None,
    }
}

pub(crate) fn signing_key(org: OrgId, secret: SecretId) -> SigningKey {
    SigningKey {
        id: SigningKeyId(Uuid::from_u128(11)),
        org,
        state: SigningKeyState::Active,
        public_key: SigningPair::new(&[1; 32]).unwrap().public(),
        secret,
        endorsement: None,
        created_at: NOW,
        deactivated_at: None,
    }
}

pub(crate) fn node(project: &Project, name: &str) -> Node {
    Node {
        id: NodeId(id_from_name(&format!("node {name}"))),
        tenant: project.tenant(),
        name: Name::stored(name.to_owned()),
        labels: Labels::default(),
        requested_labels: None,
        created_at: NOW,
        rotating: false,
        report: None,
        order: None,
    }
}

pub(crate) fn enrolment_token(tenant: Tenant, max_uses: i64) -> EnrolmentToken {
    EnrolmentToken {
        id: EnrolmentTokenId(Uuid::from_u128(21)),
        tenant,
        name: Name::stored("rack 1".to_owned()),
        max_uses,
        uses: 0,
        labels: Labels::default(),
        created_at: NOW,
        expires_at: NOW + jiff::SignedDuration::from_hours(1),
        revoked_at: None,
        made_by: None,
    }
}

/// Derives an ID from a name.
fn id_from_name(name: &str) -> Uuid {
    let mut bytes = [0; 16];
    for (index, byte) in name.bytes().enumerate() {
        bytes[index % 16] ^= byte;
    }
    Uuid::from_bytes(bytes)
}

#[tokio::test]
async fn a_database_of_a_newer_version_is_refused() {
    for store in stores().await {
        assert!(store.check_schema().await.is_ok());
        let newer = "INSERT INTO _sqlx_migrations
                       (version, description, success, checksum, execution_time)
                     SELECT 9999, 'newer', success, checksum, 0 FROM _sqlx_migrations
                     WHERE version = 1";
        store.tamper(newer).await;
        let opened = Store::open(&store.database.url).await;
        assert!(
            matches!(opened, Err(StoreError::Newer(9_999))),
            "{opened:?}"
        );
        let checked = store.check_schema().await;
        assert!(
            matches!(checked, Err(StoreError::Newer(9_999))),
            "{checked:?}"
        );
    }
}
