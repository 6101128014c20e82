//! A certificate authority that refuses every account until later.

use proxy_testkit::free_port;
use rcgen::{CertifiedKey, KeyPair};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Seconds until the authority accepts another request, as it says.
pub(crate) const RETRY_AFTER: u64 = 7_200;
pub(crate) const DETAIL: &str = "too many new registrations from this network";

/// A running authority; its thread ends with the test.
pub(crate) struct RefusingAuthority {
    port: u16,
    roots: PathBuf,
}

impl RefusingAuthority {
    /// Writes the root of its server into `folder`.
    pub(crate) fn start(folder: &Path) -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
        let roots = folder.join("authority.crt");
        std::fs::write(&roots, made.cert.pem()).unwrap();
        let port = free_port();
        let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
        let config = Arc::new(config(&made));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let config = Arc::clone(&config);
                // A client that leaves is of no interest.
                thread::spawn(move || drop(serve(stream, config, port)));
            }
        });
        Self { port, roots }
    }

    pub(crate) fn directory(&self) -> String {
        format!("https://localhost:{}/dir", self.port)
    }

    pub(crate) fn roots(&self) -> String {
        self.roots.display().to_string()
    }
}

fn config(made: &CertifiedKey<KeyPair>) -> ServerConfig {
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    config
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap()
}

/// Answers the requests of one connection.
fn serve(stream: TcpStream, config: Arc<ServerConfig>, port: u16) -> std::io::Result<()> {
    let connection = ServerConnection::new(config).map_err(std::io::Error::other)?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    loop {
        let mut request = String::new();
        if stream.read_line(&mut request)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut field = String::new();
            stream.read_line(&mut field)?;
            let field = field.trim_end().to_ascii_lowercase();
            if field.is_empty() {
                break;
            }
            if let Some(value) = field.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
        }
        let mut body = vec![0; length];
        stream.read_exact(&mut body)?;
        let answer = answer(&request, port);
        stream.get_mut().write_all(answer.as_bytes())?;
        stream.get_mut().flush()?;
    }
}

fn answer(request: &str, port: u16) -> String {
    let nonce = "Replay-Nonce: bm9uY2U\r\n";
    if request.starts_with("HEAD") {
        return format!("HTTP/1.1 200 OK\r\n{nonce}Content-Length: 0\r\n\r\n");
    }
    let at = |path: &str| format!("https://localhost:{port}/{path}");
    let (status, kind, more, body) = if request.starts_with("GET /dir") {
        let directory = serde_json::json!({
            "newNonce": at("nonce"), "newAccount": at("account"), "newOrder": at("order"),
            "revokeCert": at("revoke"), "keyChange": at("key"),
        });
        ("200 OK", "json", String::new(), directory)
    } else {
        let problem = serde_json::json!({
            "type": "urn:ietf:params:acme:error:rateLimited", "detail": DETAIL, "status": 429,
        });
        let wait = format!("Retry-After: {RETRY_AFTER}\r\n");
        ("429 Too Many Requests", "problem+json", wait, problem)
    };
    let body = body.to_string();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/{kind}\r\n{nonce}{more}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}
