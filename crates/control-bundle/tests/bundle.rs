//! Bundles as the control plane makes them.

use control_auth::SigningPair;
use control_bundle::{
    BundleError, Files, MAX_FILE_BYTES, MAX_FILES, NameError, Requirements, digest, pack, sign,
    unpack, verify, verify_order,
};
use control_wire::{BundleId, NodeId, Order, SigningKeyId};
use uuid::Uuid;

const KID: SigningKeyId = SigningKeyId(Uuid::from_u128(1));

fn requirements() -> Requirements {
    Requirements {
        schema_version: 1,
        least_proxy_version: "0.1.0".to_owned(),
    }
}

fn files(all: &[(&str, &[u8])]) -> Files {
    let owned = |(name, bytes): &(&str, &[u8])| ((*name).to_owned(), bytes.to_vec());
    all.iter().map(owned).collect()
}

#[test]
fn the_same_files_give_the_same_bytes() {
    let one = files(&[
        ("proxy.kdl", b"a"),
        ("routes/a.kdl", b"b"),
        ("z", &[0, 255]),
    ]);
    let other = files(&[
        ("z", &[0, 255]),
        ("routes/a.kdl", b"b"),
        ("proxy.kdl", b"a"),
    ]);
    let archive = pack(&one, &requirements()).unwrap();
    assert_eq!(archive, pack(&other, &requirements()).unwrap());
    // Nodes pin the digest: another library or compression level changes it, and fails here.
    assert_eq!(
        digest(&archive),
        "zWHwpPVzSgrK_ZS9KWFkdKlCOSriZQZY2SGnebogrCw"
    );
    let changed = files(&[
        ("proxy.kdl", b"A"),
        ("routes/a.kdl", b"b"),
        ("z", &[0, 255]),
    ]);
    let changed = pack(&changed, &requirements()).unwrap();
    assert_ne!(digest(&changed), digest(&archive));
}

#[test]
fn packed_files_are_unpacked_unchanged() {
    let files = files(&[("proxy.kdl", b"listeners {}"), ("a/b.html", b"<p>")]);
    let contents = unpack(&pack(&files, &requirements()).unwrap()).unwrap();
    assert_eq!(contents.files, files);
    let listed: Vec<&str> = contents
        .manifest
        .files
        .iter()
        .map(|file| file.name.as_str())
        .collect();
    let expected = ["files/a/b.html", "files/proxy.kdl", "sbom.cdx.json"];
    assert_eq!(listed, expected);
    assert_eq!(contents.sbom["specVersion"], "1.5");
    let hash = &contents.sbom["components"][0]["hashes"][0]["content"];
    assert_eq!(
        hash,
        contents.manifest.files.first().unwrap().sha256.as_str()
    );
}

#[test]
fn a_manifest_names_the_minimum_proxy_version() {
    let archive = pack(&files(&[("proxy.kdl", b"")]), &requirements()).unwrap();
    let manifest = unpack(&archive).unwrap().manifest;
    let version = |text: &str| text.parse().unwrap();
    assert_eq!(manifest.fits(1, version("0.1.0")), Ok(()));
    assert_eq!(manifest.fits(2, version("1.0.0-rc.1")), Ok(()));
    let old = manifest.fits(1, version("0.0.9"));
    assert_eq!(old, Err(BundleError::ProxyTooOld("0.1.0".to_owned())));
    let schema = manifest.fits(0, version("0.1.0"));
    assert_eq!(schema, Err(BundleError::SchemaTooNew(1)));
}

#[test]
fn files_beyond_the_bounds_are_not_packed() {
    let entry: (&str, &[u8]) = ("proxy.kdl", b"");
    let large = vec![0; MAX_FILE_BYTES + 1];
    let half = vec![0; 4 * 1024 * 1024];
    let mut many = files(&[entry]);
    many.extend((0..MAX_FILES).map(|n| (n.to_string(), Vec::new())));
    let name = |name: &str, reason| {
        let name = name.to_owned();
        Err(BundleError::Name { name, reason })
    };
    let cases = [
        (files(&[("a.kdl", b"")]), Err(BundleError::NoEntryFile)),
        (many, Err(BundleError::TooManyFiles)),
        (
            files(&[entry, ("large", &large)]),
            Err(BundleError::FileTooLarge("files/large".to_owned())),
        ),
        (files(&[entry, ("zeros", &half)]), Err(BundleError::Ratio)),
        (
            files(&[entry, ("PP.key", b"P\n-----BEGIN EC PRIVATE KEY-----\n")]),
            Err(BundleError::PrivateKey("PP.key".to_owned())),
        ),
        (
            files(&[entry, ("../a", b"")]),
            name("../a", NameError::Dots),
        ),
        (
            files(&[entry, ("/a", b"")]),
            name("/a", NameError::Absolute),
        ),
        (
            files(&[entry, ("a", b""), ("a/b", b"")]),
            Err(BundleError::Duplicate("files/a".to_owned())),
        ),
    ];
    for (files, expected) in cases {
        assert_eq!(pack(&files, &requirements()), expected);
    }
}

#[test]
fn a_signature_is_of_one_digest_by_one_key() {
    let (own, other) = (
        SigningPair::new(&[1; 32]).unwrap(),
        SigningPair::new(&[2; 32]).unwrap(),
    );
    let signature = sign("digest", KID, &own);
    assert_eq!(verify("digest", KID, &own.public(), &signature), Ok(()));
    let refused = Err(BundleError::Signature);
    let twin = SigningKeyId(Uuid::from_u128(2));
    assert_eq!(verify("digesT", KID, &own.public(), &signature), refused);
    assert_eq!(verify("digest", twin, &own.public(), &signature), refused);
    assert_eq!(verify("digest", KID, &other.public(), &signature), refused);
    assert_eq!(verify("digest", KID, &own.public(), "?"), refused);
}

#[test]
fn an_order_holds_for_one_node_and_one_counter() {
    let pair = SigningPair::new(&[1; 32]).unwrap();
    let mut order = Order {
        node: NodeId(Uuid::from_u128(3)),
        bundle: BundleId(Uuid::from_u128(4)),
        digest: "digest".to_owned(),
        counter: 7,
        kid: KID,
        signature: String::new(),
    };
    order.signature = pair.sign(order.signed_text().as_bytes());
    assert_eq!(verify_order(&order, &pair.public()), Ok(()));
    let changed = [
        Order {
            node: NodeId(Uuid::from_u128(9)),
            ..order.clone()
        },
        Order {
            bundle: BundleId(Uuid::from_u128(9)),
            ..order.clone()
        },
        Order {
            counter: 8,
            ..order.clone()
        },
        Order {
            digest: "other".to_owned(),
            ..order.clone()
        },
        Order {
            kid: SigningKeyId(Uuid::from_u128(9)),
            ..order.clone()
        },
        // A bundle's signature is not an order.
        Order {
            signature: sign("digest", KID, &pair),
            ..order
        },
    ];
    for order in changed {
        let refused = Err(BundleError::Signature);
        let found = verify_order(&order, &pair.public());
        assert_eq!(found, refused, "{order:?}");
    }
}
