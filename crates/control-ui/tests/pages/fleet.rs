//! A fleet with all states that pages can show: a stopped rollout, drift, an offline node, a refusal.

use crate::reports::{Outcome, Reports};
use crate::world::World;
use control_app::{
    BundleSource, ListFilter, NewBundle, NewCertificate, NodeSelection, Page, PageOrder,
};
use control_domain::{
    BatchSize, CertificateKeyType, CountedRequests, Gate, LoadBalancing,
    ManagedCertificateSettings, NewRollout, OnFailure, Role, RolloutCommand, RolloutState,
    RouteCounts, ServiceSettings, StepTraffic, Strategy, Target, TrafficPeriod, UpstreamSettings,
    WebhookEvent, WebhookSettings,
};
use control_wire::{
    BundleId, CertificateId, DriftId, ManagedCertificateId, NodeId, RegisterRequest, RolloutId,
    ServiceId, SigningKeyId, UpstreamId, UserId, WebhookId,
};
use jiff::SignedDuration;
use std::collections::BTreeMap;
use uuid::Uuid;

/// Seconds between two heartbeats of a node.
const ROUND_SECS: i64 = 20;

/// A fleet and its objects.
pub(crate) struct Fleet {
    pub(crate) spring: BundleId,
    pub(crate) cart: BundleId,
    pub(crate) rejected: BundleId,
    pub(crate) stopped: RolloutId,
    pub(crate) planned: RolloutId,
    pub(crate) nodes: Vec<NodeId>,
    pub(crate) member: UserId,
    pub(crate) signing_key: SigningKeyId,
    pub(crate) certificate: CertificateId,
    pub(crate) managed_certificate: ManagedCertificateId,
    pub(crate) webhook: WebhookId,
    pub(crate) drift: DriftId,
    pub(crate) upstream: UpstreamId,
    pub(crate) service: ServiceId,
    /// ID of a key with full access.
    pub(crate) api_key: String,
    reports: Reports,
}

/// Formats the configuration of the fleet. A bad `timeout` makes it harmful.
fn configuration(timeout: u32) -> String {
    format!(
        r#"listeners {{ listener "http" {{ address "0.0.0.0:8080" }} }}
routes {{ route "shop-api" {{ matches {{ host "shop.example.com"; path-prefix "/api" }}; upstream "cart" }} }}
upstreams {{ upstream "cart" {{ target "10.4.0.11:8080"; timeouts {{ request-secs {timeout} }} }} }}
"#
    )
}

/// Creates a bundle with a separate route for the paths below `/api/v2`.
pub(crate) async fn moved_bundle(world: &World) -> BundleId {
    let matches = r#"matches { host "shop.example.com"; path-prefix "/api/v2" }"#;
    let route = format!("routes {{ route \"shop-v2\" {{ {matches}; upstream \"cart\" }}; ");
    let text = configuration(60).replace("routes { ", &route);
    bundle(world, "second-version", &text).await
}

/// Recorded requests: two below `/api/v2`, one elsewhere.
pub(crate) const RECORDING: &str = r#"{"method":"GET","host":"shop.example.com","path":"/api/v2/cart?id=7"}
{"method":"GET","host":"shop.example.com","path":"/api/v2/cart"}
{"method":"POST","host":"shop.example.com","path":"/api/cart"}
"#;

impl Fleet {
    /// Creates 12 nodes. A rollout of `cart-timeouts` was stopped in its second batch of three; one
    /// node is offline, one has drifted, and one has not reported yet.
    pub(crate) async fn new(world: &World) -> Self {
        let start = world.app.now() - SignedDuration::from_mins(30);
        let spring = bundle(world, "spring-sale", &configuration(60)).await;
        let cart = bundle(world, "cart-timeouts", &configuration(2)).await;
        let rejected = bundle(world, "typo", "limits {\n    max-heder-count 5\n}\n").await;
        let mut nodes = Vec::new();
        for index in 1..=12 {
            let region = ["fra", "dub", "iad"][index % 3];
            nodes.push(node(world, &format!("{region}-edge-{index:02}"), region).await);
        }
        let call = world.call_at(start).await;
        world
            .app
            .assign_bundle(&call, world.project, spring, &nodes[..11])
            .await
            .unwrap();
        let certificate = certificate(world).await;
        let (upstream, service) = service(world, certificate).await;
        let (managed_certificate, webhook, api_key) = further(world).await;
        let mut fleet = Self {
            spring,
            cart,
            rejected,
            stopped: RolloutId(Uuid::nil()),
            planned: RolloutId(Uuid::nil()),
            nodes,
            member: UserId(Uuid::nil()),
            signing_key: SigningKeyId(Uuid::nil()),
            certificate,
            managed_certificate,
            webhook,
            drift: DriftId(Uuid::nil()),
            upstream,
            service,
            api_key,
            reports: Reports::new(start, "shop-api"),
        };
        fleet.rounds(world, 2).await;
        fleet.stopped = fleet.plan(world, cart, &fleet.nodes[..9]).await;
        fleet
            .command(world, fleet.stopped, RolloutCommand::Start)
            .await;
        fleet.run_until_paused(world).await;
        fleet.planned = fleet.plan(world, spring, &fleet.nodes[9..11]).await;
        fleet.settle(world).await;
        fleet.write_traffic(world).await;
        fleet.name_people(world).await;
        fleet
    }

    /// Adds an operator, and the IDs in the paths of pages.
    async fn name_people(&mut self, world: &World) {
        world.member(Role::Operator).await;
        world.link_admin().await;
        let call = world.call().await;
        let all = Page {
            after: None,
            limit: 10,
            order: PageOrder::Oldest,
        };
        let members = world
            .app
            .members(&call, world.org, &ListFilter::default(), all)
            .await
            .unwrap();
        self.member = members.last().unwrap().value.membership.user;
        let keys = world.app.signing_keys(&call, world.org, all).await.unwrap();
        self.signing_key = keys[0].value.id;
    }

    /// Adds traffic of the last half hour, and 1000 requests in the same hour a week before.
    async fn write_traffic(&self, world: &World) {
        let now = world.app.now();
        world.app.write_traffic(now).await.unwrap();
        let mut counted = CountedRequests::default();
        (counted.requests, counted.latency[4]) = (1_000, 1_000);
        let routes = RouteCounts {
            routes: [("shop-api".to_owned(), counted)].into(),
        };
        let mut step = StepTraffic::default();
        step.count(self.nodes[0], &routes);
        let before = TrafficPeriod::Hour.window(now).week_before().from;
        let mut tx = world.store.begin().await.unwrap();
        tx.add_traffic(world.project, before, &step).await.unwrap();
        tx.commit().await.unwrap();
    }

    /// Sends the last heartbeats: one node has been offline for ten minutes, and one runs another
    /// bundle than ordered.
    async fn settle(&mut self, world: &World) {
        self.reports.now = world.app.now() - SignedDuration::from_mins(4);
        let drifted = self.nodes[9];
        for step in 0..2 {
            let nodes = self.nodes[..10].to_vec();
            for node in nodes {
                let active = (node == drifted).then_some(self.cart);
                self.heartbeat(world, node, active).await;
            }
            self.reports.now = match step {
                0 => world.app.now(),
                _ => self.reports.now,
            };
        }
        let replica = Uuid::nil();
        world
            .app
            .watch_drift(replica, world.app.now())
            .await
            .unwrap();
        let call = world.call().await;
        let drifts = world.app.newest_drifts(&call, world.project, None, 1);
        self.drift = drifts.await.unwrap()[0].value.id;
    }

    async fn run_until_paused(&mut self, world: &World) {
        for _ in 0..60 {
            self.rounds(world, 1).await;
            world
                .app
                .advance_rollout(self.stopped, self.reports.now)
                .await
                .unwrap();
            let call = world.call_at(self.reports.now).await;
            let found = world.app.rollout(&call, world.project, self.stopped).await;
            if found.unwrap().value.rollout.state == RolloutState::Paused {
                return;
            }
        }
        panic!("the gate does not stop the rollout");
    }

    async fn rounds(&mut self, world: &World, count: usize) {
        for _ in 0..count {
            self.reports.now += SignedDuration::from_secs(ROUND_SECS);
            let nodes = self.nodes[..11].to_vec();
            for node in nodes {
                self.heartbeat(world, node, None).await;
            }
        }
    }

    /// Sends a heartbeat under the newest order, or under the node's own bundle.
    async fn heartbeat(&mut self, world: &World, id: NodeId, own: Option<BundleId>) {
        // Nodes 4 to 6 are the second batch, for which the bundle is harmful.
        let is_in_second = self.nodes[3..6].contains(&id);
        let cart = self.cart;
        let outcome = |active| Outcome {
            requests: 400,
            errors: if active == cart && is_in_second {
                12
            } else {
                1
            },
        };
        self.reports.send(world, id, own, outcome).await;
    }

    async fn plan(&self, world: &World, bundle: BundleId, nodes: &[NodeId]) -> RolloutId {
        let new = NewRollout {
            bundle,
            strategy: Strategy {
                batch: BatchSize::Count(3),
                max_unavailable: 0,
                deadline_secs: 600,
                soak_secs: 60,
                gate: Some(Gate::DEFAULT),
                needs_approval: false,
                on_failure: OnFailure::Pause,
            },
            condition: None,
            labels: BTreeMap::new(),
            not_before: None,
        };
        let call = world.call_at(self.reports.now).await;
        let selection = NodeSelection::Named(nodes.to_vec());
        let made = world
            .app
            .create_rollout(&call, world.project, new, selection)
            .await;
        made.unwrap().value.id
    }

    async fn command(&self, world: &World, rollout: RolloutId, command: RolloutCommand) {
        let call = world.call_at(self.reports.now).await;
        let done = world
            .app
            .command_rollout(&call, world.project, rollout, command)
            .await;
        done.unwrap();
    }
}

/// Creates a bundle with one file.
pub(crate) async fn bundle(world: &World, name: &str, text: &str) -> BundleId {
    let new = NewBundle {
        name: name.to_owned(),
        source: BundleSource::Files([("proxy.kdl".to_owned(), text.as_bytes().to_vec())].into()),
    };
    let call = world.call().await;
    let made = world.app.create_bundle(&call, world.project, new).await;
    made.unwrap().value.id
}

/// Creates a certificate for `shop.example.com`; returns chain and key.
pub(crate) fn certificate_and_key() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["shop.example.com".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}

/// Creates a managed certificate, a webhook, and an API key, of which the ID is returned.
async fn further(world: &World) -> (ManagedCertificateId, WebhookId, String) {
    let certificate = managed_certificate(world).await;
    let webhook = webhook(world).await;
    let (key, _) = world.named_key("deploys").await;
    (certificate, webhook, key)
}

/// Creates a webhook with a pending test delivery.
async fn webhook(world: &World) -> WebhookId {
    let call = world.call().await;
    let settings = WebhookSettings {
        name: "on-call".to_owned(),
        url: "https://hooks.example.com/deploys".to_owned(),
        events: vec![WebhookEvent::RolloutStopped, WebhookEvent::NodeSilent],
        enabled: true,
    };
    let made = world.app.create_webhook(&call, world.project, settings);
    let (made, _) = made.await.unwrap();
    let tested = world.app.test_webhook(&call, world.project, made.value.id);
    tested.await.unwrap();
    made.value.id
}

/// Creates the upstream `cart` with a health check, and a service that uses it and the certificate.
async fn service(world: &World, certificate: CertificateId) -> (UpstreamId, ServiceId) {
    let call = world.call().await;
    let target = |address: &str| Target {
        address: address.to_owned(),
        weight: 1,
    };
    let upstream = UpstreamSettings {
        name: "cart".to_owned(),
        load_balancing: LoadBalancing::RoundRobin,
        targets: vec![target("10.4.0.11:8080"), target("10.4.0.12:8080")],
        tls: None,
        settings: r#"{"health-check":{"type":["http",{"path":"/healthz"}]}}"#.to_owned(),
    };
    let made = world.app.create_upstream(&call, world.project, upstream);
    let upstream = made.await.unwrap().value.id;
    let service = ServiceSettings {
        name: "shop-api".to_owned(),
        host: Some("shop.example.com".to_owned()),
        path_prefix: Some("/api".to_owned()),
        priority: 0,
        upstream,
        certificate: Some(certificate),
        settings: "{}".to_owned(),
    };
    let made = world.app.create_service(&call, world.project, service);
    (upstream, made.await.unwrap().value.id)
}

async fn certificate(world: &World) -> CertificateId {
    let (chain_pem, key) = certificate_and_key();
    let new = NewCertificate {
        name: "shop".to_owned(),
        chain_pem,
        private_key_pem: key.into(),
        node_labels: Some([("region".to_owned(), "fra".to_owned())].into()),
    };
    let call = world.call().await;
    let made = world.app.create_certificate(&call, world.project, new);
    made.await.unwrap().value.id
}

/// Creates a managed certificate that is not issued yet.
async fn managed_certificate(world: &World) -> ManagedCertificateId {
    let settings = ManagedCertificateSettings {
        name: "cart".to_owned(),
        hosts: vec!["cart.example.com".to_owned()],
        directory: world.app.acme.directories[0].clone(),
        email: "ops@example.com".to_owned(),
        terms_agreed: true,
        key_type: CertificateKeyType::EcdsaP256,
        node_labels: [("region".to_owned(), "fra".to_owned())].into(),
    };
    let call = world.call().await;
    let made = world
        .app
        .create_managed_certificate(&call, world.project, settings);
    made.await.unwrap().value.id
}

/// A new node.
pub(crate) async fn node(world: &World, name: &str, region: &str) -> NodeId {
    let request = RegisterRequest {
        name: name.to_owned(),
        labels: [("region".to_owned(), region.to_owned())].into(),
    };
    let call = world.call().await;
    let made = world.app.register_node(&call, world.project, request).await;
    made.unwrap().node.id
}
