//! Requests for the renewal window of a managed certificate, at an authority that answers when the
//! test permits it.

use crate::world::{World, sample};
use axum::http::StatusCode;
use control_app::AcmeAuthorities;
use control_testkit::databases;
use control_wire::{CertificateId, ManagedCertificateId};
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair,
};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs::default_provider;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

const MANAGED: &str = "/projects/{project}/managed-certificates";
const CERTIFICATES: &str = "/projects/{project}/certificates";
const DEADLINE: Duration = Duration::from_mins(1);

/// An authority with accounts and renewal windows; it ends with the test's runtime.
struct Authority {
    base: String,
    /// PEM of the root of its server and of its certificates.
    root: String,
    issuer: CertifiedIssuer<'static, KeyPair>,
    /// Notified when the window is requested.
    asked: Arc<Notify>,
    /// Permits the answer to that request.
    answers: Arc<Notify>,
}

impl Authority {
    async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params
            .distinguished_name
            .push(DnType::CommonName, "test root");
        let key = KeyPair::generate().unwrap();
        let issuer = CertifiedIssuer::self_signed(params, key).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("https://{}", listener.local_addr().unwrap());
        let authority = Self {
            base: base.clone(),
            root: issuer.pem(),
            issuer,
            asked: Arc::default(),
            answers: Arc::default(),
        };
        let (chain, key) = authority.issue("127.0.0.1");
        let (asked, answers) = (Arc::clone(&authority.asked), Arc::clone(&authority.answers));
        let acceptor = acceptor(&chain, &key);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (asked, answers) = (Arc::clone(&asked), Arc::clone(&answers));
                let (acceptor, base) = (acceptor.clone(), base.clone());
                tokio::spawn(async move {
                    respond(stream, &acceptor, &base, &asked, &answers).await;
                });
            }
        });
        authority
    }

    fn directory(&self) -> String {
        format!("{}/directory", self.base)
    }

    /// PEM of a certificate for `name`, and of its key.
    fn issue(&self, name: &str) -> (String, String) {
        let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        params.use_authority_key_identifier_extension = true;
        params
            .extended_key_usages
            .push(ExtendedKeyUsagePurpose::ServerAuth);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn acceptor(chain: &str, key: &str) -> TlsAcceptor {
    let chain = CertificateDer::from_pem_slice(chain.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap();
    let config = config
        .with_no_client_auth()
        .with_single_cert(vec![chain], key);
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

/// Answers one request.
async fn respond(
    stream: TcpStream,
    acceptor: &TlsAcceptor,
    base: &str,
    asked: &Notify,
    answers: &Notify,
) {
    let Ok(stream) = acceptor.accept(stream).await else {
        return;
    };
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.unwrap_or(0) <= 2 {
            break;
        }
        if let Some(text) = line.to_lowercase().strip_prefix("content-length:") {
            length = text.trim().parse().unwrap();
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.unwrap();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, body) = match path {
        "/directory" => {
            let url = |name: &str| format!("{base}/{name}");
            let urls = json!({
                "newNonce": url("nonce"), "newAccount": url("account"), "newOrder": url("order"),
                "renewalInfo": url("window"),
            });
            ("200 OK", urls)
        }
        "/nonce" => ("200 OK", Value::Null),
        "/account" => ("201 Created", json!({"status": "valid"})),
        _ if path.starts_with("/window/") => {
            asked.notify_one();
            answers.notified().await;
            let start = Timestamp::now() + SignedDuration::from_hours(50 * 24);
            let end = start + SignedDuration::from_hours(24);
            let window = json!({"start": start.to_string(), "end": end.to_string()});
            ("200 OK", json!({"suggestedWindow": window}))
        }
        _ => ("404 Not Found", Value::Null),
    };
    let body = if body.is_null() {
        String::new()
    } else {
        body.to_string()
    };
    let answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nReplay-Nonce: bm9uY2U\r\n\
         Location: {base}/account/1\r\nRetry-After: 21600\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream
        .write_all(answer.as_bytes())
        .await
        .unwrap_or_default();
    stream.shutdown().await.unwrap_or_default();
}

/// A managed certificate with a certificate that is not due, and a request for its window that is.
async fn with_certificate(world: &World, authority: &Authority) -> ManagedCertificateId {
    let key = world.full_key().await;
    let mut body = sample(MANAGED);
    body["directory"] = json!(authority.directory());
    let made = world.post(MANAGED, &key, body).await;
    assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
    let id: ManagedCertificateId = made.text("id").parse().unwrap();
    let (chain, private_key) = authority.issue("a.example.com");
    let mut body = sample(CERTIFICATES);
    body["chain_pem"] = json!(chain);
    body["private_key_pem"] = json!(private_key);
    let stored = world.post(CERTIFICATES, &key, body).await;
    assert_eq!(stored.status, StatusCode::CREATED, "{}", stored.text);
    let certificate: CertificateId = stored.text("id").parse().unwrap();
    let now = world.app.now();
    let mut tx = world.store.begin().await.unwrap();
    let mut value = tx.managed_certificate(id).await.unwrap().unwrap().value;
    value.certificate = Some(certificate);
    value.progress.next_at = now + SignedDuration::from_hours(30 * 24);
    value.progress.window_ask_at = Some(now - SignedDuration::from_secs(1));
    tx.write_progress(&value).await.unwrap();
    tx.commit().await.unwrap();
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_renewal_asked_for_while_the_authority_answers_is_not_lost() {
    for database in databases() {
        let mut world = World::new(database).await;
        let authority = Authority::start().await;
        let folder = tempfile::tempdir().unwrap();
        let roots = folder.path().join("roots.pem");
        fs::write(&roots, &authority.root).unwrap();
        world.replace_app(Timestamp::now, |app| {
            app.acme = AcmeAuthorities {
                directories: vec![authority.directory()],
                ca_file: Some(roots),
            };
        });
        for is_renewed in [false, true] {
            let id = with_certificate(&world, &authority).await;
            let app = Arc::clone(&world.app);
            let asking = tokio::spawn(async move { app.issue_certificate(id).await });
            let asked = timeout(DEADLINE, authority.asked.notified()).await;
            asked.expect("a request for the window");
            if is_renewed {
                let key = world.full_key().await;
                let path = format!("{MANAGED}/{id}/renew");
                let renewed = world.post(&path, &key, Value::Null).await;
                assert_eq!(renewed.status, StatusCode::OK, "{}", renewed.text);
            }
            authority.answers.notify_one();
            timeout(DEADLINE, asking).await.unwrap().unwrap().unwrap();

            let mut tx = world.store.read().await.unwrap();
            let after = tx.managed_certificate(id).await.unwrap().unwrap().value;
            let progress = after.progress;
            assert_eq!(progress.window.is_none(), is_renewed, "{progress:?}");
            let is_due = progress.next_at <= world.app.now();
            assert_eq!(is_due, is_renewed, "{progress:?}");
        }
    }
}
