//! Certificates of bundles: fetching, storage, renewal.

use super::{Client, fault_text};
use crate::bundle::{Certificates, HeldCertificate, PartialFetch};
use crate::channel::ChannelError;
use crate::host::{Host, Renewed};
use crate::machine::Outcome;
use crate::state::Identity;
use control_bundle::digest;
use control_wire::CertificateId;
use std::time::Duration;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Maximum wait for private keys at the start of the process.
const KEYS_AT_START: Duration = Duration::from_secs(10);

impl Client {
    /// Loads the certificates from the disk; returns true if all are present. They may be outdated,
    /// which the control plane's first response shows.
    pub(super) fn open_sealed(&mut self, needed: &[CertificateId]) -> bool {
        let (Some(sealed), Some(own)) = (&self.sealed, self.machine.identity()) else {
            return false;
        };
        let Some(certificates) = sealed.load(own.node, needed) else {
            return false;
        };
        self.certificates = certificates;
        true
    }

    /// Stores the served certificates for the next start. In a trial, stores those of the previous
    /// bundle, because a crashed process starts with that one. Without stored certificates, the
    /// start waits for the control plane.
    pub(super) fn keep_served(&mut self) {
        let (Some(sealed), Some(own)) = (&self.sealed, self.machine.identity()) else {
            return;
        };
        let mut kept = self.served.clone();
        if let Some(good) = self.good.as_ref().filter(|_| self.is_on_trial) {
            kept.0.extend(good.certificates.0.clone());
        }
        if let Err(error) = sealed.save(own.node, &kept) {
            self.report_fault(&format!(
                "private keys cannot be kept for the next start: {error}"
            ));
        }
    }

    pub(super) fn certificates_at_start(&mut self, needed: &[CertificateId]) -> Result<(), String> {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let fetching = async {
            let Some(own) = self.machine.identity().cloned() else {
                return Err("the node has no identity".to_owned());
            };
            self.channel
                .exchange_token(&own)
                .await
                .map_err(fault_text)?;
            self.fetch_certificates(&own, needed)
                .await
                .map_err(fault_text)
        };
        let fetched = runtime.block_on(async { timeout(KEYS_AT_START, fetching).await });
        fetched.unwrap_or_else(|_| Err("the control plane does not answer".to_owned()))
    }

    /// Activates renewed certificates. Has no effect if they are unchanged, for example after
    /// another certificate was renewed.
    pub(super) async fn renew(&mut self, host: &mut impl Host) -> Outcome {
        if self.certificates == self.served {
            return Outcome::Renewed(false);
        }
        let renewed = Renewed {
            folder: self.in_use.last().cloned().unwrap_or_default(),
            certificates: self.certificates.clone(),
        };
        match host.renew(renewed).await {
            Ok(()) => {
                self.served = self.certificates.clone();
                if let Some(current) = &mut self.current {
                    current.certificates = self.served.clone();
                }
                self.keep_served();
                Outcome::Renewed(true)
            }
            Err(diagnostics) => Outcome::Rejected(diagnostics),
        }
    }

    pub(super) async fn fetch_certificates(
        &mut self,
        own: &Identity,
        needed: &[CertificateId],
    ) -> Result<(), ChannelError> {
        let renewals = self.machine.renewals();
        // Renewed certificates may be among those fetched before.
        self.partial.take_if(|partial| partial.renewals != renewals);
        for id in needed {
            let begun = self.partial.as_ref();
            if begun.is_some_and(|begun| begun.certificates.0.contains_key(id)) {
                continue;
            }
            let known = self.certificates.0.get(id).or(self.served.0.get(id));
            let known = known.cloned();
            let tag = known.as_ref().map(|held| digest(held.chain_pem.as_bytes()));
            let fetched = self.channel.certificate(own, *id, tag.as_deref()).await?;
            let fetched = fetched.map(|fetched| HeldCertificate {
                chain_pem: fetched.chain_pem,
                key_pem: Zeroizing::new(fetched.private_key_pem),
            });
            let partial = self.partial.get_or_insert_with(|| PartialFetch {
                renewals,
                certificates: Certificates::default(),
            });
            let unchanged = || ChannelError::Failed("not modified".to_owned(), None);
            let held = fetched.or(known).ok_or_else(unchanged)?;
            partial.certificates.0.insert(*id, held);
        }
        let mut certificates = self.partial.take().unwrap_or_default().certificates;
        certificates.0.retain(|id, _| needed.contains(id));
        self.certificates = certificates;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::trust::Trust;
    use control_wire::{NodeId, OrgId, ProjectId};
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;
    use uuid::Uuid;

    /// Answers one request per connection; returns the heads of the requests.
    async fn serve(listener: TcpListener, answers: Vec<String>) -> Vec<String> {
        let mut heads = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).await.unwrap();
            heads.push(String::from_utf8_lossy(&head[..length]).into_owned());
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
        heads
    }

    fn answer(status: &str, body: &str) -> String {
        let length = body.len();
        format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}")
    }

    fn delivered(id: CertificateId, chain: &str) -> String {
        let body = serde_json::json!({"id": id, "chain_pem": chain, "private_key_pem": "key"});
        answer("200 OK", &body.to_string())
    }

    #[tokio::test]
    async fn an_interrupted_fetch_continues_after_the_fetched_certificates() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = Settings {
            url: format!("http://{}", listener.local_addr().unwrap()),
            project: None,
            enrolment_token_file: None,
            data_dir: PathBuf::new(),
            machine_key_file: None,
            ca_file: None,
            name: "node".to_owned(),
            labels: BTreeMap::new(),
            version: "0.1.0",
            schema_version: 1,
        };
        let own = Identity {
            node: NodeId(Uuid::nil()),
            key: String::new(),
            project: ProjectId(Uuid::nil()),
            org: OrgId(Uuid::nil()),
            trust: Trust::pin(OrgId(Uuid::nil()), &[]),
        };
        let needed = [1, 2].map(|number| CertificateId(Uuid::from_u128(number)));
        let [first, second] = needed;
        let answers = vec![
            delivered(first, "chain 1"),
            answer("429 Too Many Requests", ""),
            delivered(second, "chain 2"),
            answer("304 Not Modified", ""),
            delivered(second, "chain 3"),
        ];
        let server = tokio::spawn(serve(listener, answers));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        let mut client = Client::simulated(settings, http, Duration::MAX);

        let limited = client.fetch_certificates(&own, &needed).await;
        assert!(matches!(limited, Err(ChannelError::Failed(..))));
        client.fetch_certificates(&own, &needed).await.unwrap();
        client.fetch_certificates(&own, &needed).await.unwrap();

        let held = client.certificates.0.values();
        let chains: Vec<_> = held.map(|held| held.chain_pem.as_str()).collect();
        assert_eq!(chains, ["chain 1", "chain 3"]);
        let heads = server.await.unwrap();
        for (head, id) in heads.iter().zip([first, second, second, first, second]) {
            assert!(head.contains(&id.to_string()), "{id}: {head}");
        }
        let tag = format!("\"{}\"", digest(b"chain 1"));
        assert!(heads[3].contains(&tag), "{}", heads[3]);
    }
}
