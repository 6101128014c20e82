//! Orders at an authority without a network, which loses responses.

use super::*;
use crate::responder::tests::NoAnswers;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient, NewAccount};
use rcgen::{CertificateParams, CertificateSigningRequestParams, Issuer, KeyPair, date_time_ymd};
use rustls_pki_types::CertificateSigningRequestDer;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::UNIX_EPOCH;

const DIRECTORY: &str = "https://ca.test/dir";

/// An authority with one order for validated hosts.
#[derive(Default)]
struct Authority {
    orders: AtomicUsize,
    loses_certificates: AtomicBool,
    forgets_orders: AtomicBool,
    chain: OnceLock<String>,
}

struct Client(Arc<Authority>);

impl HttpClient for Client {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let authority = Arc::clone(&self.0);
        Box::pin(async move {
            let (parts, body) = request.into_parts();
            let Ok(body) = body.collect().await;
            authority.answer(parts.uri.path(), &body.to_bytes())
        })
    }
}

impl Authority {
    fn answer(&self, path: &str, body: &[u8]) -> Result<BytesResponse, Error> {
        match path {
            "/dir" => Ok(response(
                200,
                None,
                &json!({
                    "newNonce": "https://ca.test/nonce",
                    "newAccount": "https://ca.test/account",
                    "newOrder": "https://ca.test/order",
                }),
            )),
            "/nonce" => Ok(response(200, None, &Value::Null)),
            "/account" => Ok(response(201, Some("https://ca.test/account/1"), &json!({}))),
            "/order" => {
                self.orders.fetch_add(1, Ordering::Relaxed);
                Ok(response(
                    201,
                    Some("https://ca.test/order/1"),
                    &self.state(),
                ))
            }
            "/order/1" if self.forgets_orders.load(Ordering::Relaxed) => {
                let problem = json!({"type": "urn:ietf:params:acme:error:malformed"});
                Ok(response(404, None, &problem))
            }
            "/order/1" => Ok(response(200, None, &self.state())),
            "/finalize" => {
                self.chain.get_or_init(|| issue(body));
                Ok(response(200, None, &self.state()))
            }
            _ if self.loses_certificates.load(Ordering::Relaxed) => {
                Err(Error::Other("the connection is lost".into()))
            }
            _ => {
                let chain = self.chain.get().cloned().unwrap_or_default();
                Ok(made(200, None, chain.into()))
            }
        }
    }

    fn state(&self) -> Value {
        let is_issued = self.chain.get().is_some();
        json!({
            "status": if is_issued { "valid" } else { "ready" },
            "authorizations": [],
            "finalize": "https://ca.test/finalize",
            "certificate": is_issued.then_some("https://ca.test/certificate"),
        })
    }
}

fn response(status: u16, location: Option<&str>, body: &Value) -> BytesResponse {
    made(status, location, body.to_string().into())
}

fn made(status: u16, location: Option<&str>, body: Bytes) -> BytesResponse {
    let builder = Response::builder().status(status);
    let mut builder = builder.header("replay-nonce", "nonce");
    if let Some(location) = location {
        builder = builder.header("location", location);
    }
    let (parts, ()) = builder.body(()).unwrap().into_parts();
    BytesResponse {
        parts,
        body: Box::new(body),
    }
}

/// The chain for the signing request in a JWS.
fn issue(jws: &[u8]) -> String {
    let decode = |value: &Value| {
        let text = value.as_str().unwrap();
        BASE64_URL_SAFE_NO_PAD.decode(text).unwrap()
    };
    let jws: Value = serde_json::from_slice(jws).unwrap();
    let payload: Value = serde_json::from_slice(&decode(&jws["payload"])).unwrap();
    let csr = CertificateSigningRequestDer::from(decode(&payload["csr"]));
    let mut csr = CertificateSigningRequestParams::from_der(&csr).unwrap();
    csr.params.not_before = date_time_ymd(2025, 11, 1);
    csr.params.not_after = date_time_ymd(2026, 2, 1);
    let issuer = Issuer::new(CertificateParams::default(), KeyPair::generate().unwrap());
    csr.signed_by(&issuer).unwrap().pem()
}

fn now() -> SystemTime {
    UNIX_EPOCH + Duration::from_hours(490_000)
}

fn settings() -> AcmeSettings {
    AcmeSettings {
        hosts: vec!["a.test".to_owned()],
        directory: DIRECTORY.to_owned(),
        directory_ca_file: None,
        email: "a@b.test".to_owned(),
        challenge: Challenge::Http01,
        external_account: None,
        key_type: AcmeKeyType::EcdsaP256,
        storage: PathBuf::new(),
        user_agent: "test".to_owned(),
    }
}

/// Attempts for `settings`, with what is kept between them.
struct Attempts {
    authority: Arc<Authority>,
    account: Account,
    requested: Option<RequestedOrder>,
}

impl Attempts {
    async fn new() -> Self {
        let authority = Arc::<Authority>::default();
        let builder = Account::builder_with_http(Box::new(Client(Arc::clone(&authority))));
        let new = NewAccount {
            contact: &[],
            terms_of_service_agreed: true,
            only_return_existing: false,
        };
        let (account, _) = builder
            .create(&new, DIRECTORY.to_owned(), None)
            .await
            .unwrap();
        Self {
            authority,
            account,
            requested: None,
        }
    }

    async fn obtain(&mut self, settings: &AcmeSettings) -> Result<Zeroizing<Vec<u8>>, AcmeError> {
        let responder: Arc<dyn Responder> = Arc::new(NoAnswers);
        let (account, requested) = (&self.account, &mut self.requested);
        obtain(settings, account, &responder, None, now, requested).await
    }

    fn orders(&self) -> usize {
        self.authority.orders.load(Ordering::Relaxed)
    }
}

fn block_on(attempts: impl Future<Output = ()>) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(attempts);
}

#[test]
fn an_issued_certificate_whose_response_was_lost_is_not_ordered_again() {
    block_on(async {
        let mut attempts = Attempts::new().await;
        let authority = Arc::clone(&attempts.authority);
        let loses = &authority.loses_certificates;
        loses.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            let error = attempts.obtain(&settings()).await.unwrap_err();
            assert_eq!(error.kind(), "unreachable");
        }
        loses.store(false, Ordering::Relaxed);
        let pem = attempts.obtain(&settings()).await.unwrap();
        assert!(StoredCertificate::from_file(&pem).is_ok());
        assert_eq!(attempts.orders(), 1);
        assert!(attempts.requested.is_none());
    });
}

#[test]
fn an_order_that_the_authority_has_forgotten_is_placed_again() {
    block_on(async {
        let mut attempts = Attempts::new().await;
        let authority = Arc::clone(&attempts.authority);
        authority.loses_certificates.store(true, Ordering::Relaxed);
        assert!(attempts.obtain(&settings()).await.is_err());
        authority.forgets_orders.store(true, Ordering::Relaxed);
        // The new order of this authority cannot be polled either.
        let error = attempts.obtain(&settings()).await.unwrap_err();
        assert_eq!(error.kind(), "malformed");
        assert_eq!(attempts.orders(), 2);
    });
}
