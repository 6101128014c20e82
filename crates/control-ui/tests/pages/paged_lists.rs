//! Long lists: each item is on exactly one page, in one order.

use crate::fleet::certificate_and_key;
use crate::world::{World, between};
use axum::http::StatusCode;
use control_app::NewCertificate;
use control_domain::{LoadBalancing, ServiceSettings, Target, UpstreamSettings};
use control_http::SessionCookie;
use control_testkit::Database;
use control_wire::{CertificateId, SigningKeyId, UpstreamId};

/// Follows the links to further pages; returns all pages.
async fn pages(world: &World, path: &str) -> Vec<String> {
    let base = path.split('?').next().unwrap();
    let (mut texts, mut next) = (Vec::new(), Some(path.to_owned()));
    while let Some(path) = next {
        let shown = world.get(&path, &world.admin).await;
        assert_eq!(shown.status, StatusCode::OK, "{path}: {}", shown.text);
        assert!(texts.len() < 10, "{path} does not end");
        next = shown.text.contains("rel=\"next\"").then(|| {
            let href = between(&shown.text, "rel=\"next\" href=\"", "\"");
            let href = href.replace("&#38;", "&");
            if href.starts_with('/') {
                href
            } else {
                format!("{base}{href}")
            }
        });
        texts.push(shown.text);
    }
    texts
}

/// Returns the names from `begin` to the end of the element, on all pages.
fn names(pages: &[String], begin: &str) -> Vec<String> {
    let found = pages.iter().flat_map(|text| text.split(begin).skip(1));
    let found = found.map(|rest| rest.split('<').next().unwrap());
    let names = found.map(|rest| rest.rsplit('>').next().unwrap().to_owned());
    names.collect()
}

async fn upstream(world: &World, name: &str) -> UpstreamId {
    let settings = UpstreamSettings {
        name: name.to_owned(),
        load_balancing: LoadBalancing::RoundRobin,
        targets: vec![Target {
            address: "10.0.0.1:80".to_owned(),
            weight: 1,
        }],
        tls: None,
        settings: "{}".to_owned(),
    };
    let call = world.call().await;
    let made = world.app.create_upstream(&call, world.project, settings);
    made.await.unwrap().value.id
}

async fn certificate(world: &World, name: &str, (chain, key): (&str, &str)) -> CertificateId {
    let new = NewCertificate {
        name: name.to_owned(),
        chain_pem: chain.to_owned(),
        private_key_pem: key.to_owned().into(),
        node_labels: None,
    };
    let call = world.call().await;
    let made = world.app.create_certificate(&call, world.project, new);
    made.await.unwrap().value.id
}

async fn service(
    world: &World,
    number: i32,
    upstream: UpstreamId,
    certificate: Option<CertificateId>,
) {
    let settings = ServiceSettings {
        name: format!("service-{number:03}"),
        host: Some("shop.example.com".to_owned()),
        path_prefix: Some(format!("/{number}")),
        // Several services have the same priority, also across pages.
        priority: number / 7,
        upstream,
        certificate,
        settings: "{}".to_owned(),
    };
    let call = world.call().await;
    let made = world.app.create_service(&call, world.project, settings);
    made.await.unwrap();
}

fn numbered(kind: &str, numbers: std::ops::Range<i32>) -> Vec<String> {
    numbers
        .map(|number| format!("{kind}-{number:03}"))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_of_definitions_have_every_item_on_one_page() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let (chain, key) = certificate_and_key();
    let (mut last_upstream, mut last_certificate) = (None, None);
    for number in (0..101).rev() {
        last_upstream = Some(upstream(&world, &format!("upstream-{number:03}")).await);
        let name = format!("certificate-{number:03}");
        last_certificate = Some(certificate(&world, &name, (&chain, &key)).await);
    }
    for number in 0..205 {
        let certificate = last_certificate.filter(|_| number < 3);
        service(&world, number, last_upstream.unwrap(), certificate).await;
    }

    let found = pages(&world, "/projects/{project}/upstreams").await;
    assert_eq!(found.len(), 2);
    assert_eq!(
        names(&found, "<th scope=\"row\"><a href"),
        numbered("upstream", 0..101)
    );
    // All 205 services that use it are counted, so it has no button for deletion.
    assert!(found[0].contains("service-000, service-204, 203 more"));
    assert_eq!(found[0].matches("/delete\">Delete<").count(), 99);

    let found = pages(&world, "/projects/{project}/certificates").await;
    assert_eq!(found.len(), 2);
    let mut all = names(&found, "<th scope=\"row\"><a href");
    all.sort();
    assert_eq!(all, numbered("certificate", 0..101));
    let used = found.concat();
    assert!(used.contains("service-000, service-002, 1 more"));

    let found = pages(&world, "/projects/{project}/services").await;
    assert_eq!(found.len(), 2);
    let all = names(&found, "<th scope=\"row\"><a href");
    let mut expected = numbered("service", 0..205);
    expected.sort_by_key(|name| std::cmp::Reverse(name[8..].parse::<i32>().unwrap() / 7));
    let priorities = |names: &[String]| -> Vec<i32> {
        let numbers = names.iter().map(|name| name[8..].parse::<i32>().unwrap());
        numbers.map(|number| number / 7).collect()
    };
    assert_eq!(priorities(&all), priorities(&expected));
    let mut sorted = all.clone();
    sorted.sort();
    assert_eq!(sorted, numbered("service", 0..205));
    // Each page contains the certificate of the service.
    assert!(found[1].contains("certificate-000"), "{}", found[1]);

    let search = world
        .get("/projects/{project}/search?q=service-", &world.admin)
        .await;
    assert_eq!(
        search.heading(),
        "More than 20 things have “service-” in their name."
    );
    let search = world
        .get("/projects/{project}/search?q=service-204", &world.admin)
        .await;
    assert_eq!(search.heading(), "1 thing has “service-204” in its name.");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_of_an_organization_have_every_item_on_one_page() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let mut former: Option<SigningKeyId> = None;
    for _ in 0..101 {
        let call = world.call().await;
        let key = world.app.rotate_signing_key(&call, world.org).await;
        let key = key.unwrap().value.id;
        if let Some(id) = former.replace(key) {
            let ended = world.app.deactivate_signing_key(&call, world.org, id).await;
            ended.unwrap();
        }
    }
    let found = pages(&world, "/orgs/{org}/signing-keys").await;
    assert_eq!(found.len(), 2);
    let keys = found
        .iter()
        .map(|text| text.matches("<th scope=\"row\">").count());
    // Includes the first key, and the standby key.
    assert!((102..=103).contains(&keys.sum::<usize>()));
    assert!(found[0].contains(">Key …"), "{}", found[0]);
    assert!(found[1].contains(">Older signing keys.<"), "{}", found[1]);

    for number in 0..55 {
        world.add_project(&format!("project-{number:03}")).await;
    }
    let found = pages(&world, "/").await;
    assert_eq!(found.len(), 2);
    let mut all = names(&found, "<li class=\"panel\"><h2><a href");
    all.sort();
    let mut expected = numbered("project", 0..55);
    expected.insert(0, "edge".to_owned());
    assert_eq!(all, expected);
}
