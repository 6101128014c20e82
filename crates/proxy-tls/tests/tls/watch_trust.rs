//! Reload of root certificates and client identities that change on disk.

use crate::support::{
    Ca, Leaf, client_settings, connect, load_client, load_server, now, site, written,
};
use proxy_tls::{
    Change, ClientAuth, ClientAuthVerdict, ClientTlsSettings, ServerTlsSettings, TlsError,
    TlsFailure, VerifyFailure, Watcher, classify,
};

#[test]
fn new_roots_for_clients_decide_from_then_on() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let clients = Ca::new("clients");
    let ca_file = site.dir.write("clients.pem", clients.pem());
    let server = load_server(ServerTlsSettings {
        client_auth: ClientAuth::Required {
            ca_file: ca_file.clone(),
        },
        ..site.server.settings().clone()
    });
    let identity = site.dir.put("identity", &clients.issue(&Leaf::client()));
    let client = load_client(ClientTlsSettings {
        client_certificate: Some(identity),
        ..client_settings(&site.dir.path("ca.pem"))
    });
    let verdict = || {
        let pair = connect(&client.config(), &server.config(), "a.example").unwrap();
        server.verdict(&pair.server, now())
    };
    let mut watcher = Watcher::new();
    watcher.watch_server(&server);
    assert!(!verdict().is_refusal());

    site.dir.write("clients.pem", Ca::new("others").pem());
    let file = ca_file.clone();
    assert_eq!(watcher.poll(written(&ca_file)), [Change::Swapped { file }]);
    assert!(verdict().is_refusal());

    site.dir.write("clients.pem", "");
    let reported: Vec<_> = (0..4)
        .flat_map(|_| watcher.poll(written(&ca_file)))
        .collect();
    let faults = vec![TlsError::NotPem {
        file: ca_file.clone(),
    }];
    assert_eq!(reported, [Change::Kept { faults }]);
    assert!(matches!(
        verdict(),
        ClientAuthVerdict::Missing { .. } | ClientAuthVerdict::Rejected { .. }
    ));
}

#[test]
fn new_roots_for_an_upstream_forget_its_sessions() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let ca_file = site.dir.path("ca.pem");
    let mut watcher = Watcher::new();
    watcher.watch_client(&site.client);
    let reach = || connect(&site.client.config(), &site.server.config(), "a.example");
    reach().unwrap();
    assert_eq!(watcher.poll(written(&ca_file)), []);

    site.dir.write("ca.pem", Ca::new("others").pem());
    let file = ca_file.clone();
    assert_eq!(watcher.poll(written(&ca_file)), [Change::Swapped { file }]);
    let error = reach().unwrap_err().client.unwrap();
    assert_eq!(
        classify(&error),
        TlsFailure::Verify(VerifyFailure::UnknownIssuer)
    );
}

#[test]
fn a_renewed_client_certificate_is_shown_from_the_next_connection_on() {
    let site = site(&[Leaf::new(&["a.example"])]);
    let ca_file = site.dir.path("ca.pem");
    let server = load_server(ServerTlsSettings {
        client_auth: ClientAuth::Required {
            ca_file: ca_file.clone(),
        },
        ..site.server.settings().clone()
    });
    let identity = site.dir.put("identity", &site.ca.issue(&Leaf::client()));
    let client = load_client(ClientTlsSettings {
        client_certificate: Some(identity.clone()),
        ..client_settings(&ca_file)
    });
    let mut watcher = Watcher::new();
    watcher.watch_client(&client);
    let poll_at = written(&identity.cert_file);

    let renewed = site.ca.issue(&Leaf::client());
    site.dir.write("identity.crt", &renewed.cert);
    assert_eq!(watcher.poll(poll_at), [], "its key is not there yet");
    site.dir.put("identity", &renewed);
    let file = ca_file.clone();
    assert_eq!(watcher.poll(poll_at), [Change::Swapped { file }]);

    let pair = connect(&client.config(), &server.config(), "a.example").unwrap();
    let shown = pair.server.peer_certificates().unwrap()[0].as_ref();
    assert_eq!(shown, renewed.der);
}

#[test]
fn an_upstream_without_files_is_not_watched() {
    let mut watcher = Watcher::new();

    assert_eq!(watcher.poll(now()), []);
}
