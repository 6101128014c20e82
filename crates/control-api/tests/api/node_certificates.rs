//! Certificates of nodes: only those in the node's own bundles.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_app::certificate_tag;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection, Executor};
use std::fs;

const BUNDLES: &str = "/projects/{project}/bundles";
const CERTIFICATES: &str = "/projects/{project}/certificates";
const OK: StatusCode = StatusCode::OK;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;

/// A project with a bundle for each of three certificates.
struct Project {
    world: World,
    full: Credential,
    certificates: Vec<String>,
    bundles: Vec<String>,
}

impl Project {
    async fn on_each_database() -> Vec<Self> {
        let mut projects = Vec::new();
        for world in worlds().await {
            projects.push(Self::new(world).await);
        }
        projects
    }

    async fn new(world: World) -> Self {
        let full = world.full_key().await;
        let (mut certificates, mut bundles) = (Vec::new(), Vec::new());
        for _ in 0..3 {
            let made = world.post(CERTIFICATES, &full, sample(CERTIFICATES)).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
            let certificate = made.text("id");
            let mut new = sample(BUNDLES);
            new["files"][format!("certificates/{certificate}.pem")] = json!("");
            let made = world.post(BUNDLES, &full, new).await;
            assert_eq!(made.text("state"), "signed", "{}", made.body);
            certificates.push(certificate);
            bundles.push(made.text("id"));
        }
        Self {
            world,
            full,
            certificates,
            bundles,
        }
    }

    async fn order(&self, bundle: usize) {
        let assign = format!("{BUNDLES}/{}/assign", self.bundles[bundle]);
        let nodes = json!({"nodes": [self.world.node]});
        let ordered = self.world.post(&assign, &self.full, nodes).await;
        assert_eq!(ordered.status, OK, "{}", ordered.body);
    }

    /// Reports a bundle as the node's active one.
    async fn report(&self, bundle: usize) {
        let heartbeat_request = json!({"health": {"cpu_percent": 1.0}, "status": {
            "active": self.bundles[bundle], "last_good": self.bundles[bundle],
        }});
        let path = "/nodes/{node}/heartbeat";
        let heartbeat = self
            .world
            .post(path, &self.world.node_key, heartbeat_request)
            .await;
        assert_eq!(heartbeat.status, OK, "{}", heartbeat.body);
    }

    async fn fetch(&self, certificate: usize) -> StatusCode {
        let path = format!(
            "/nodes/{{node}}/certificates/{}",
            self.certificates[certificate]
        );
        let answer = self.world.get(&path, &self.world.node_key).await;
        let has_key = answer.body["private_key_pem"] != Value::Null;
        assert_eq!(has_key, answer.status == OK);
        answer.status
    }

    async fn fetch_all(&self) -> [StatusCode; 3] {
        [
            self.fetch(0).await,
            self.fetch(1).await,
            self.fetch(2).await,
        ]
    }

    async fn run(&self, sql: &'static str) {
        let url = &self.world.database.url;
        let mut connection = AnyConnection::connect(url).await.unwrap();
        connection.execute(sql).await.unwrap();
    }

    /// Leaves the database as the former version would.
    async fn forget_lists(&self) {
        self.run("DELETE FROM bundle_certificates").await;
        self.run("UPDATE bundles SET certificates_listed = 0").await;
    }
}

#[tokio::test]
async fn a_node_gets_the_certificates_of_its_orders_alone() {
    for project in Project::on_each_database().await {
        assert_eq!(project.fetch_all().await, [NOT_FOUND; 3]);
        project.order(0).await;
        assert_eq!(project.fetch_all().await, [OK, NOT_FOUND, NOT_FOUND]);
        project.order(1).await;
        assert_eq!(
            project.fetch_all().await,
            [OK, OK, NOT_FOUND],
            "one may be under way"
        );
        project.order(2).await;
        assert_eq!(project.fetch_all().await, [NOT_FOUND, OK, OK]);
        // A node's report gives no access to a bundle that was not ordered.
        project.report(0).await;
        assert_eq!(project.fetch_all().await, [NOT_FOUND, OK, OK]);
        let world = &project.world;
        let (other, other_key) = world.new_node(world.tenant()).await;
        let path = format!("/nodes/{other}/certificates/{}", project.certificates[2]);
        let foreign = world.get(&path, &other_key).await;
        assert_eq!(foreign.status, NOT_FOUND, "it is another node's order");
        let unknown = format!("/nodes/{other}/certificates/{}", uuid::Uuid::now_v7());
        let unknown = world.get(&unknown, &other_key).await;
        assert_eq!(foreign.code(), unknown.code());
        assert_eq!(
            foreign.body["error"]["message"],
            unknown.body["error"]["message"]
        );
    }
}

#[tokio::test]
async fn a_certificate_that_the_node_has_is_not_delivered_again() {
    for project in Project::on_each_database().await {
        project.order(0).await;
        let Project { world, .. } = &project;
        let path = format!("/nodes/{{node}}/certificates/{}", project.certificates[0]);
        let first = world.get(&path, &world.node_key).await;
        assert_eq!(first.status, OK);
        let tag = first.header("etag");
        let chain = first.body["chain_pem"].as_str().unwrap();
        assert_eq!(tag, format!("\"{}\"", certificate_tag(chain)));
        let delivered = world.audited("certificate.delivered").await.len();

        for (known, expected) in [(tag, StatusCode::NOT_MODIFIED), ("\"other\"", OK)] {
            let fields = [("if-none-match", known)];
            let again = world.send(&Method::GET, &path, &world.node_key, &Value::Null, &fields);
            assert_eq!(again.await.status, expected);
        }

        let now = world.audited("certificate.delivered").await.len();
        assert_eq!(now, delivered + 1, "of the other tag");
    }
}

#[tokio::test]
async fn a_node_fetches_two_hundred_certificates_at_once() {
    for project in Project::on_each_database().await {
        project.order(0).await;
        for _ in 0..200 {
            assert_eq!(project.fetch(0).await, OK);
        }
    }
}

#[tokio::test]
async fn a_node_that_rejects_newer_bundles_keeps_the_certificates_of_the_one_it_serves() {
    for project in Project::on_each_database().await {
        project.order(0).await;
        project.report(0).await;
        project.order(1).await;
        project.order(2).await;
        assert_eq!(
            project.fetch_all().await,
            [OK; 3],
            "it serves the first one still"
        );
        project.report(2).await;
        assert_eq!(project.fetch_all().await, [NOT_FOUND, OK, OK]);
    }
}

#[tokio::test]
async fn a_revoked_bundle_leaves_its_certificates_to_the_node_that_serves_it() {
    for project in Project::on_each_database().await {
        project.order(0).await;
        project.report(0).await;
        let path = format!("{BUNDLES}/{}/revoke", project.bundles[0]);
        let revoked = project.world.post(&path, &project.full, Value::Null).await;
        assert_eq!(revoked.status, OK, "{}", revoked.body);
        assert_eq!(project.fetch(0).await, OK, "there is no other bundle yet");
    }
}

#[tokio::test]
async fn bundles_of_the_version_before_are_read_when_a_node_asks() {
    for project in Project::on_each_database().await {
        project.order(0).await;
        project.order(1).await;
        project.forget_lists().await;
        let all = project.fetch_all().await;
        assert_eq!(
            all,
            [OK, OK, NOT_FOUND],
            "no node is locked out by the upgrade"
        );
        // Archives are read only once, so they can be deleted now.
        for bundle in fs::read_dir(project.world.objects.path().join("bundles")).unwrap() {
            fs::remove_dir_all(bundle.unwrap().path()).unwrap();
        }
        assert_eq!(project.fetch_all().await, all);
        // A lost list must not cause a refusal, because nodes treat refusals as final.
        project.forget_lists().await;
        assert_eq!(project.fetch(0).await, StatusCode::INTERNAL_SERVER_ERROR);
    }
}
