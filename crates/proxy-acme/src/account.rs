//! Accounts at an authority.

use crate::authority::{AuthorityAccess, AuthorityClient, RetryAfter};
use crate::error::AcmeError;
use crate::settings::{AcmeSettings, ExternalAccount};
use crate::storage::Storage;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use instant_acme::{Account, AccountBuilder, AccountCredentials, ExternalAccountKey, NewAccount};
use tokio::task::spawn_blocking;
use zeroize::Zeroizing;

/// Opens the stored account, or creates and stores a new one.
pub(crate) async fn open(
    settings: &AcmeSettings,
    storage: &Storage,
    retry_after: &RetryAfter,
) -> Result<Account, AcmeError> {
    if let Some(account) = open_stored(settings, storage, retry_after).await? {
        return Ok(account);
    }
    let builder = builder(settings, retry_after).await?;
    let (account, credentials) = create(builder, settings).await?;
    let credentials = serde_json::to_vec(&credentials).map(Zeroizing::new);
    let credentials = credentials.map_err(|_| AcmeError::BadAccount {
        path: storage.account_file(),
    })?;
    let files = storage.clone();
    blocking(move || files.write_account(&credentials)).await?;
    Ok(account)
}

/// Opens the stored account; `None` if there is none.
pub(crate) async fn open_stored(
    settings: &AcmeSettings,
    storage: &Storage,
    retry_after: &RetryAfter,
) -> Result<Option<Account>, AcmeError> {
    let files = storage.clone();
    let stored = blocking(move || files.read_account()).await?;
    let Some(stored) = stored.map(Zeroizing::new) else {
        return Ok(None);
    };
    let builder = builder(settings, retry_after).await?;
    let credentials: AccountCredentials =
        serde_json::from_slice(&stored).map_err(|_| AcmeError::BadAccount {
            path: storage.account_file(),
        })?;
    let opened = builder.from_credentials(credentials).await;
    if let Err(instant_acme::Error::KeyRejected) = opened {
        let path = storage.account_file();
        return Err(AcmeError::BadAccount { path });
    }
    Ok(Some(opened?))
}

async fn builder(
    settings: &AcmeSettings,
    retry_after: &RetryAfter,
) -> Result<AccountBuilder, AcmeError> {
    builder_with(settings.into(), retry_after).await
}

/// Account builder with an HTTP client for the authority.
pub(crate) async fn builder_with(
    access: AuthorityAccess,
    retry_after: &RetryAfter,
) -> Result<AccountBuilder, AcmeError> {
    let retry_after = retry_after.clone();
    let client = blocking(move || AuthorityClient::new(access, retry_after)).await?;
    Ok(Account::builder_with_http(Box::new(client)))
}

async fn create(
    builder: AccountBuilder,
    settings: &AcmeSettings,
) -> Result<(Account, AccountCredentials), AcmeError> {
    let external = match settings.external_account.clone() {
        None => None,
        Some(account) => Some(blocking(move || external_key(&account)).await?),
    };
    let directory = settings.directory.clone();
    create_for(builder, &settings.email, directory, external.as_ref()).await
}

/// Creates an account with this e-mail address. The caller has agreed to the authority's terms.
pub(crate) async fn create_for(
    builder: AccountBuilder,
    email: &str,
    directory: String,
    external: Option<&ExternalAccountKey>,
) -> Result<(Account, AccountCredentials), AcmeError> {
    let contact = format!("mailto:{email}");
    let account = NewAccount {
        contact: &[&contact],
        terms_of_service_agreed: true,
        only_return_existing: false,
    };
    Ok(builder.create(&account, directory, external).await?)
}

/// Maximum size of the file with an external account's key.
const MAX_KEY_FILE_BYTES: u64 = 64 * 1024;

fn external_key(account: &ExternalAccount) -> Result<ExternalAccountKey, AcmeError> {
    let ExternalAccount { key_id, key_file } = account;
    let bad = |why: String| AcmeError::BadExternalKey {
        path: key_file.clone(),
        why,
    };
    let text = proxy_setting_files::read(key_file, MAX_KEY_FILE_BYTES).map(Zeroizing::new);
    let text = text.map_err(|error| bad(format!("cannot be read: {error}")))?;
    let text = str::from_utf8(&text).map_err(|_| bad("is not base64url".to_owned()))?;
    let text = text.trim().trim_end_matches('=');
    let key = BASE64_URL_SAFE_NO_PAD.decode(text).map(Zeroizing::new);
    let key = key.map_err(|_| bad("is not base64url".to_owned()))?;
    Ok(ExternalAccountKey::new(key_id.clone(), &key))
}

/// Runs `work` on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AcmeError> + Send + 'static,
) -> Result<T, AcmeError> {
    let outcome = spawn_blocking(work).await;
    outcome.unwrap_or_else(|error| Err(AcmeError::Key(error.to_string())))
}
