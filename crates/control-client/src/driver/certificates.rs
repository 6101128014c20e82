//! The certificates of bundles: fetched, held, renewed.

use super::{Client, fault_text};
use crate::bundle::{Certificates, HeldCertificate};
use crate::channel::ChannelError;
use crate::host::{Host, Renewed};
use crate::machine::Outcome;
use crate::state::Identity;
use control_wire::{CertificateId, NodeCertificate};
use std::time::Duration;
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Maximum time that the start of the process waits for private keys.
const KEYS_AT_START: Duration = Duration::from_secs(10);

impl Client {
    /// Loads the certificates from the disk; returns true if all are present. They may have been
    /// renewed since; the control plane's first answer shows that.
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

    /// Stores the served certificates for the next start; in a trial, the previous bundle's, with
    /// which a crashed process starts. Without them it waits for the control plane.
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

    /// Unchanged certificates, such as after the renewal of another one, have no effect.
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
        let mut certificates = Certificates::default();
        for id in needed {
            let NodeCertificate {
                id: _, // The requested identifier.
                chain_pem,
                private_key_pem,
            } = self.channel.certificate(own, *id).await?;
            let held = HeldCertificate {
                chain_pem,
                key_pem: Zeroizing::new(private_key_pem),
            };
            certificates.0.insert(*id, held);
        }
        self.certificates = certificates;
        Ok(())
    }
}
