//! An ACME order: placed or resumed, validated, finished, and its certificate stored.

use super::issuance::IssuanceFault;
use crate::app::App;
use crate::audit::value::done;
use crate::call::Call;
use crate::error::Error;
use control_auth::CheckedCertificate;
use control_domain::{
    Certificate, CertificateFacts, CertificateKeyType, IssuanceProgress, ManagedCertificate,
    Refusal,
};
use control_store::{Rate, StoreError, Transaction, Versioned};
use control_wire::{CertificateId, SecretId};
use jiff::{SignedDuration, Timestamp};
use proxy_acme::{AcmeError, AuthorityAccount, CertificateKey, IssuedCertificate, PlacedOrder};
use proxy_model::AcmeKeyType;
use serde_json::json;
use zeroize::Zeroizing;

/// Rate of orders per organization; authorities have separate limits per account and address.
const ORDERS: Rate = Rate {
    per_minute: 1,
    burst: 50,
};
/// Time from an issuance to the first request for the renewal window (ARI).
const FIRST_WINDOW: SignedDuration = SignedDuration::from_hours(6);
/// Wait before the next request for the renewal window after a failed one.
const WINDOW_RETRY: SignedDuration = SignedDuration::from_hours(6);

impl App {
    /// Obtains and stores a certificate, resuming the order in progress if there is one.
    pub(super) async fn obtain(
        &self,
        found: Versioned<ManagedCertificate>,
    ) -> Result<(), IssuanceFault> {
        let Versioned { value, version } = found;
        self.require_served(&value).await?;
        let account = self.authority_account(&value).await?;
        let obtained = self.obtain_by(&account, &value, version).await;
        if let Err(IssuanceFault::Acme(error)) = obtained {
            return Err(account.asking(error).into());
        }
        obtained
    }

    async fn obtain_by(
        &self,
        account: &AuthorityAccount,
        value: &ManagedCertificate,
        version: i64,
    ) -> Result<(), IssuanceFault> {
        let mut order = self.order_of(account, value).await?;
        if !order.is_validated() {
            self.validate_order(value, &mut order).await?;
        }
        let key = self.order_key(value, &mut order).await?;
        let key_type = key_type(value.key_type);
        let now = self.now().into();
        let chain = order.finish(&key, &value.hosts, key_type, now).await?;
        self.store_issued(value, version, chain, key.pem()).await
    }

    /// Resumes the order in progress if it can still be finished, or places a new one.
    async fn order_of(
        &self,
        account: &AuthorityAccount,
        value: &ManagedCertificate,
    ) -> Result<PlacedOrder, IssuanceFault> {
        if let Some(url) = &value.progress.order_url {
            match account.resume(url).await {
                Ok(mut order) => {
                    let is_lost = order.is_requested() && value.progress.order_secret.is_none();
                    if !is_lost && order.failure().await.is_none() {
                        return Ok(order);
                    }
                }
                // Authorities delete old orders.
                Err(AcmeError::Refused(refusal)) if refusal.retry_after.is_none() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let org = value.tenant.org;
        let bucket = format!("acme:{org}");
        let allowance = self.take_token(&bucket, ORDERS, self.now()).await?;
        if !allowance.admitted {
            let retry_after_secs = allowance.retry_after_secs;
            return Err(IssuanceFault::Rate { retry_after_secs });
        }
        let replaced = self.issued_before(value).await?;
        let replaced = replaced.filter(|_| value.progress.window.is_some());
        let order = account.place(&value.hosts, replaced.as_ref()).await?;
        self.write_order(value, Some(order.url()), None).await?;
        Ok(order)
    }

    /// The private key of the order. It is stored before the authority gets the signing request, so
    /// that a crash cannot lose the key of an issued certificate.
    async fn order_key(
        &self,
        value: &ManagedCertificate,
        order: &mut PlacedOrder,
    ) -> Result<CertificateKey, IssuanceFault> {
        if let Some(secret) = value.progress.order_secret
            && value.progress.order_url.as_deref() == Some(order.url())
        {
            let pem = self.open_secret(secret).await?;
            return Ok(CertificateKey::stored(&value.hosts, &pem)?);
        }
        let key = CertificateKey::generate(&value.hosts, key_type(value.key_type)).await?;
        let url = order.url().to_owned();
        self.write_order(value, Some(&url), Some(key.pem())).await?;
        Ok(key)
    }

    /// Stores URL and private key of the order in progress.
    async fn write_order(
        &self,
        value: &ManagedCertificate,
        url: Option<&str>,
        key: Option<&Zeroizing<String>>,
    ) -> Result<(), IssuanceFault> {
        let mut tx = self.store.begin().await?;
        let found = tx.managed_certificate(value.id).await?;
        let mut current = found.ok_or(IssuanceFault::Superseded)?.value;
        if current.hosts != value.hosts || current.directory != value.directory {
            return Err(IssuanceFault::Superseded);
        }
        let before = current.progress.order_secret.take();
        current.progress.order_url = url.map(str::to_owned);
        if let Some(key) = key {
            let org = Some(value.tenant.org);
            let secret = self.seal(&mut tx, org, key.as_bytes(), self.now()).await?;
            current.progress.order_secret = Some(secret);
        }
        tx.write_progress(&current).await?;
        if let Some(before) = before {
            tx.delete_secret(before).await?;
        }
        Ok(tx.commit().await?)
    }

    /// Stores the issued certificate in place of the previous one. Nodes fetch it like a
    /// certificate that an operator replaced.
    async fn store_issued(
        &self,
        value: &ManagedCertificate,
        version: i64,
        chain_pem: String,
        key_pem: &Zeroizing<String>,
    ) -> Result<(), IssuanceFault> {
        let now = self.now();
        let checked = CheckedCertificate::check(&chain_pem, key_pem, now);
        let facts = facts(checked.map_err(Error::from)?);
        let issued = IssuedCertificate::parse(&chain_pem)?;
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let found = tx.managed_certificate(value.id).await?;
        let found = found.filter(|found| found.version == version);
        let mut current = found.ok_or(IssuanceFault::Superseded)?.value;
        let org = Some(current.tenant.org);
        let secret = self.seal(&mut tx, org, key_pem.as_bytes(), now).await?;
        let certificate = Certificate {
            id: CertificateId::new(now, self.random_id()),
            tenant: current.tenant,
            name: current.name.clone(),
            facts,
            chain_pem,
            secret,
            node_labels: current.node_labels.clone(),
            created_at: now,
        };
        let facts = certificate.facts.clone();
        let id = put_certificate(&mut tx, &current, certificate).await?;
        tx.forget_issuance(&current).await?;
        current.certificate = Some(id);
        current.progress = after_issuance(&issued, now);
        tx.write_progress(&current).await?;
        let (hosts, next_at, not_after) =
            (&current.hosts, current.progress.next_at, facts.not_after);
        tx.note_change(done(&json!({
            "certificate": id, "hosts": hosts, "not_after": not_after,
            "fingerprint": facts.fingerprint, "next_at": next_at,
        })));
        tracing::info!(certificate = %current.name, %not_after, "a certificate was obtained");
        let (call, action) = (Call::system(now), "managed_certificate.issued");
        self.commit(tx, &call, action, current.tenant, current.id.0)
            .await?;
        Ok(())
    }

    /// The organization's account at the authority, created with the first order.
    async fn authority_account(
        &self,
        value: &ManagedCertificate,
    ) -> Result<AuthorityAccount, IssuanceFault> {
        let access = self.acme.access(value).ok_or(IssuanceFault::NotPermitted)?;
        let stored = self.store.read().await?.acme_account(value).await?;
        if let Some(secret) = stored {
            let credentials = self.open_secret(secret).await?;
            let opened = AuthorityAccount::open(access, credentials.as_bytes()).await;
            return Ok(opened?);
        }
        let email = value.email.as_str();
        let (account, credentials) = AuthorityAccount::create(access.clone(), email).await?;
        let now = self.now();
        let mut tx = self.store.begin().await?;
        let org = Some(value.tenant.org);
        let secret = self.seal(&mut tx, org, &credentials, now).await?;
        match tx.insert_acme_account(value, secret, now).await {
            Ok(()) => tx.commit().await?,
            // Another replica stored an account first; later orders use that one.
            Err(StoreError::Conflict) => return Ok(account),
            Err(error) => return Err(error.into()),
        }
        Ok(account)
    }

    /// Requests the renewal window from the authority; a failure only delays the next request.
    pub(super) async fn ask_window(
        &self,
        value: ManagedCertificate,
        now: Timestamp,
    ) -> Result<(), Error> {
        if value.progress.window_ask_at.is_none_or(|at| now < at) {
            return Ok(());
        }
        let asked = async {
            let Some(issued) = self.issued_before(&value).await? else {
                return Ok(None);
            };
            let account = self.authority_account(&value).await?;
            let window = account.renewal_window(&issued).await?;
            Ok::<_, IssuanceFault>(Some((issued, window)))
        };
        let asked = asked.await;
        let mut tx = self.store.begin().await?;
        tx.lock_audit().await?;
        let Some(current) = tx.managed_certificate(value.id).await? else {
            return Ok(());
        };
        let mut current = current.value;
        // A renewal that was requested meanwhile, or other hosts, are due at once.
        let is_same = current.certificate == value.certificate
            && current.progress.next_at == value.progress.next_at;
        if !is_same {
            return Ok(());
        }
        let progress = &mut current.progress;
        match asked {
            Ok(Some((issued, Some((window, again))))) => {
                progress.window = Some((time(window.start), time(window.end)));
                progress.next_at = time(issued.renew_at(Some(window)));
                let again = SignedDuration::try_from(again).unwrap_or(WINDOW_RETRY);
                progress.window_ask_at = Some(now + again);
            }
            // The authority has no renewal windows.
            Ok(Some((_, None)) | None) => progress.window_ask_at = None,
            Err(_) => progress.window_ask_at = Some(now + WINDOW_RETRY),
        }
        tx.write_progress(&current).await?;
        Ok(tx.commit().await?)
    }

    /// The certificate in use; `None` if there is none, or it cannot be parsed.
    async fn issued_before(
        &self,
        value: &ManagedCertificate,
    ) -> Result<Option<IssuedCertificate>, IssuanceFault> {
        let Some(id) = value.certificate else {
            return Ok(None);
        };
        let found = self.store.read().await?.certificate(id).await?;
        let chain = found.map(|found| found.value.chain_pem);
        Ok(chain.and_then(|chain| IssuedCertificate::parse(&chain).ok()))
    }

    async fn open_secret(&self, secret: SecretId) -> Result<Zeroizing<String>, Error> {
        let stored = self.store.read().await?.secret(secret).await?;
        let stored = stored.ok_or(Refusal::NotFound)?;
        let bytes = self.sealer.open(&secret.to_string(), &stored.sealed)?;
        let text = str::from_utf8(&bytes).map_err(|_| Refusal::NotFound)?;
        Ok(Zeroizing::new(text.to_owned()))
    }
}

/// Inserts the certificate, or replaces the previous one under the same identifier.
async fn put_certificate(
    tx: &mut Transaction,
    manager: &ManagedCertificate,
    certificate: Certificate,
) -> Result<CertificateId, IssuanceFault> {
    let before = match manager.certificate {
        Some(id) => tx.certificate(id).await?,
        None => None,
    };
    let Some(before) = before else {
        return match tx.insert_certificate(&certificate).await {
            Err(StoreError::Conflict) => Err(IssuanceFault::NameTaken),
            inserted => {
                inserted?;
                Ok(certificate.id)
            }
        };
    };
    let Versioned { value, version } = before;
    let certificate = Certificate {
        id: value.id,
        created_at: value.created_at,
        ..certificate
    };
    tx.update_certificate(&certificate, version).await?;
    tx.delete_secret(value.secret).await?;
    Ok(certificate.id)
}

fn after_issuance(issued: &IssuedCertificate, now: Timestamp) -> IssuanceProgress {
    let renew_at = issued.renew_at(None).max(issued.earliest_order(now.into()));
    IssuanceProgress {
        window_ask_at: Some(now + FIRST_WINDOW),
        ..IssuanceProgress::due(time(renew_at))
    }
}

fn facts(checked: CheckedCertificate) -> CertificateFacts {
    let CheckedCertificate {
        hosts,
        not_before,
        not_after,
        fingerprint,
    } = checked;
    CertificateFacts {
        hosts,
        not_before,
        not_after,
        fingerprint,
    }
}

/// Converts to whole milliseconds, the precision of stored times.
fn time(time: std::time::SystemTime) -> Timestamp {
    let exact = Timestamp::try_from(time).unwrap_or(Timestamp::MAX);
    Timestamp::from_millisecond(exact.as_millisecond()).unwrap_or(Timestamp::MAX)
}

fn key_type(own: CertificateKeyType) -> AcmeKeyType {
    match own {
        CertificateKeyType::EcdsaP256 => AcmeKeyType::EcdsaP256,
        CertificateKeyType::EcdsaP384 => AcmeKeyType::EcdsaP384,
        CertificateKeyType::Rsa2048 => AcmeKeyType::Rsa2048,
    }
}
