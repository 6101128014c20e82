//! The control plane's side: keys, orders, archives.

use control_auth::SigningPair;
use control_bundle::{Requirements, digest, pack};
use control_client::{Assignment, Bundle, Outcome, OwnVersions};
use control_wire::{
    BundleId, JsonWebKey, NodeId, Order, OrgId, ProjectId, RegisterResponse, SigningKeyId,
    endorsed_text,
};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

pub(crate) fn versions() -> OwnVersions {
    OwnVersions {
        schema: 1,
        proxy: "0.1.0".parse().expect("the version is valid"),
    }
}

pub(crate) fn id(number: u128) -> Uuid {
    Uuid::from_u128(number)
}

/// Outcome with this order and this number of certificate renewals.
pub(crate) fn assigned(order: Order, renewals: u64) -> Outcome {
    let tag = format!("W/\"{}-{renewals}\"", order.counter);
    tagged(order, renewals, &tag)
}

pub(crate) fn tagged(order: Order, renewals: u64, tag: &str) -> Outcome {
    Outcome::Assigned(Assignment {
        order,
        renewals,
        challenges: Vec::new(),
        trial: None,
        tag: tag.to_owned(),
    })
}

/// Outcome with the order on trial, to be confirmed within this time.
pub(crate) fn on_trial(order: Order, confirm_within: Duration) -> Outcome {
    Outcome::Assigned(Assignment {
        tag: format!("\"{}-0\"", order.counter),
        order,
        renewals: 0,
        challenges: Vec::new(),
        trial: Some(confirm_within),
    })
}

pub(crate) struct Sample {
    pair: SigningPair,
    next_pair: SigningPair,
    pub(crate) registered: RegisterResponse,
    pub(crate) key: JsonWebKey,
    /// Signed by `key`.
    pub(crate) next_key: JsonWebKey,
    pub(crate) good: Arc<[u8]>,
    /// Archive of a bundle with a certificate.
    pub(crate) tls: Arc<[u8]>,
}

impl Sample {
    pub(crate) fn new() -> Self {
        let pair = SigningPair::new(&[1; 32]).expect("the key is valid");
        let next_pair = SigningPair::new(&[2; 32]).expect("the key is valid");
        let org = OrgId(id(6));
        let web_key = |number, pair: &SigningPair| {
            let x = pair.public().as_str().to_owned();
            JsonWebKey::ed25519(SigningKeyId(id(number)), x)
        };
        let key = web_key(1, &pair);
        let mut next_key = web_key(2, &next_pair);
        let text = endorsed_text(org, next_key.kid, &next_key.x);
        next_key.endorsement = Some(pair.sign(text.as_bytes()));
        next_key.endorsed_by = Some(key.kid);
        let registered = RegisterResponse {
            node_id: NodeId(id(3)),
            node_key: "key".to_owned(),
            project: ProjectId(id(5)),
            org,
            signing_keys: vec![key.clone()],
            heartbeat_interval_secs: 30,
        };
        Self {
            pair,
            next_pair,
            registered,
            key,
            next_key,
            good: archive("listeners {}"),
            tls: archive_with_certificate(),
        }
    }

    pub(crate) fn order(&self, counter: u64, archive: &[u8]) -> Order {
        let mut order = Order {
            node: self.registered.node_id,
            bundle: BundleId(id(10)),
            digest: digest(archive),
            counter,
            kid: self.key.kid,
            signature: String::new(),
        };
        self.sign(&mut order);
        order
    }

    pub(crate) fn sign(&self, order: &mut Order) {
        order.signature = self.pair.sign(order.signed_text().as_bytes());
    }

    pub(crate) fn order_by_next_key(&self, counter: u64) -> Order {
        let mut order = self.order(counter, &self.good);
        order.kid = self.next_key.kid;
        order.signature = self.next_pair.sign(order.signed_text().as_bytes());
        order
    }

    pub(crate) fn bundle(&self, order: &Order) -> Bundle {
        let opened = Bundle::open(order.clone(), Arc::clone(&self.good), versions());
        opened.expect("a good bundle")
    }

    /// Returns true if one of both keys signed the order for this node.
    pub(crate) fn is_genuine(&self, order: &Order) -> bool {
        let text = order.signed_text();
        let by = |pair: &SigningPair| {
            let public = pair.public();
            public.verify(text.as_bytes(), &order.signature).is_ok()
        };
        order.node == self.registered.node_id && (by(&self.pair) || by(&self.next_pair))
    }

    /// Returns all outcomes of a driver, including ones that no correct control plane causes.
    pub(crate) fn outcomes(&self) -> Vec<Outcome> {
        let newer = self.order(2, &self.good);
        let mut forged = self.order(3, &self.good);
        forged.signature.clone_from(&newer.signature);
        let mut foreign = self.order(3, &self.good);
        foreign.node = NodeId(id(99));
        self.sign(&mut foreign);
        let mut conflicting = self.order(1, &self.good);
        conflicting.bundle = BundleId(id(11));
        self.sign(&mut conflicting);
        let with_certificate = archive_with_certificate();
        vec![
            Outcome::Enrolled(self.registered.clone()),
            Outcome::TokenIssued,
            Outcome::Keys(vec![self.key.clone(), self.next_key.clone()].into()),
            Outcome::Keys(Vec::new().into()),
            Outcome::Reported(Duration::from_secs(30)),
            Outcome::Confirmed(Duration::from_secs(30)),
            Outcome::Unchanged(Duration::from_secs(30)),
            Outcome::Unassigned("\"0\"".to_owned()),
            assigned(self.order(1, &self.good), 0),
            assigned(newer, 0),
            assigned(self.order(2, &with_certificate), 0),
            assigned(self.order(2, &with_certificate), 1),
            assigned(self.order_by_next_key(2), 0),
            assigned(forged, 0),
            assigned(foreign, 0),
            assigned(conflicting, 0),
            Outcome::Fetched(Arc::clone(&self.good)),
            Outcome::Fetched(with_certificate),
            Outcome::Fetched(Arc::from(*b"garbage")),
            Outcome::Refused("gone".to_owned()),
            Outcome::Staged,
            Outcome::CertificatesFetched,
            Outcome::Activated,
            Outcome::Renewed(true),
            Outcome::Rejected(vec!["no".to_owned()]),
            Outcome::Waited,
            Outcome::Unauthorized,
            Outcome::Failed(None),
        ]
    }
}

fn archive(text: &str) -> Arc<[u8]> {
    pack_files([("proxy.kdl".to_owned(), text.as_bytes().to_vec())])
}

fn archive_with_certificate() -> Arc<[u8]> {
    pack_files([
        ("proxy.kdl".to_owned(), Vec::new()),
        (format!("certificates/{}.pem", id(40)), Vec::new()),
    ])
}

fn pack_files<const N: usize>(files: [(String, Vec<u8>); N]) -> Arc<[u8]> {
    let requirements = Requirements {
        schema_version: 1,
        least_proxy_version: "0.1.0".to_owned(),
    };
    pack(&files.into(), &requirements)
        .expect("an archive")
        .into()
}
