//! The object store: named byte strings in a folder or in an S3-compatible store.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::{ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const SCHEME: &str = "s3://";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit of a request, including retries.
const RETRY_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_RETRIES: usize = 3;

/// The object store. Clones share its connections.
#[derive(Clone, Debug)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    prefix: Key,
}

/// The bytes of an object, in chunks.
pub type ObjectBytes = BoxStream<'static, Result<Bytes, ObjectError>>;

/// Error of the object store.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// No object has this name.
    #[error("the object does not exist")]
    Missing,
    /// The object exceeds the caller's limit.
    #[error("the object is too large")]
    TooLarge,
    /// The URL is not `s3://BUCKET/PREFIX?endpoint=…&region=…`.
    #[error("not a URL of an object store: {0}")]
    BadUrl(&'static str),
    /// The store cannot be reached, or refused the request.
    #[error("the object store failed")]
    Failed(#[source] object_store::Error),
}

impl Objects {
    /// Stores objects as files in a folder, which is created if it does not exist.
    ///
    /// A file is written under a temporary name, synced and renamed, so a partial file is never
    /// visible.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Failed`] if the folder cannot be created.
    pub fn in_folder(folder: &Path) -> Result<Self, ObjectError> {
        let failed = |source| object_store::Error::Generic {
            store: "folder",
            source: Box::new(source),
        };
        std::fs::create_dir_all(folder).map_err(failed)?;
        let files = LocalFileSystem::new_with_prefix(folder)?.with_fsync(true);
        Ok(Self {
            store: Arc::new(files),
            prefix: Key::default(),
        })
    }

    /// Connects to `s3://BUCKET/PREFIX`; `endpoint` and `region` may follow as query parameters.
    ///
    /// `variables` is the environment, the only source of credentials; the names are those of the
    /// AWS tools.
    ///
    /// # Errors
    ///
    /// [`ObjectError`] for an invalid URL or setting.
    pub fn by_url(
        url: &str,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ObjectError> {
        let location = url.strip_prefix(SCHEME);
        let location = location.ok_or(ObjectError::BadUrl("it does not begin with s3://"))?;
        let (location, parameters) = location.split_once('?').unwrap_or((location, ""));
        let (bucket, prefix) = location.split_once('/').unwrap_or((location, ""));
        if bucket.is_empty() || bucket.contains('@') {
            return Err(ObjectError::BadUrl(
                "it has no bucket, as in s3://BUCKET/PREFIX",
            ));
        }
        let client = ClientOptions::new()
            .with_timeout(REQUEST_TIMEOUT)
            .with_connect_timeout(CONNECT_TIMEOUT);
        let retry = RetryConfig {
            max_retries: MAX_RETRIES,
            retry_timeout: RETRY_TIMEOUT,
            ..RetryConfig::default()
        };
        let mut builder = AmazonS3Builder::new()
            .with_client_options(client)
            .with_retry(retry);
        for (name, value) in variables.filter(|(name, _)| name.starts_with("AWS_")) {
            if let Ok(key) = name.to_ascii_lowercase().parse::<AmazonS3ConfigKey>() {
                builder = builder.with_config(key, value);
            }
        }
        for parameter in parameters.split('&').filter(|text| !text.is_empty()) {
            builder = match parameter.split_once('=') {
                Some(("endpoint", endpoint)) => builder
                    .with_endpoint(endpoint)
                    .with_allow_http(endpoint.starts_with("http://")),
                Some(("region", region)) => builder.with_region(region),
                _ => {
                    return Err(ObjectError::BadUrl(
                        "it has a parameter other than `endpoint` and `region`",
                    ));
                }
            };
        }
        Ok(Self {
            store: Arc::new(builder.with_bucket_name(bucket).build()?),
            prefix: Key::from(prefix),
        })
    }

    /// Stores an object durably.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Failed`] if the store refuses or does not answer.
    pub async fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), ObjectError> {
        let payload = PutPayload::from(bytes);
        self.store.put(&self.key(name), payload).await?;
        Ok(())
    }

    /// Deletes an object; a missing object is no error.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Failed`] if the store refuses or does not answer.
    pub async fn delete(&self, name: &str) -> Result<(), ObjectError> {
        match self.store.delete(&self.key(name)).await.map_err(Into::into) {
            Ok(()) | Err(ObjectError::Missing) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Opens an object: its length, and its bytes in chunks.
    ///
    /// # Errors
    ///
    /// [`ObjectError::Missing`], or [`ObjectError::Failed`].
    pub async fn stream(&self, name: &str) -> Result<(u64, ObjectBytes), ObjectError> {
        let found = self.store.get(&self.key(name)).await?;
        let size = found.meta.size;
        let pieces = found.into_stream();
        Ok((size, pieces.map(|piece| Ok(piece?)).boxed()))
    }

    /// Reads a whole object of at most `limit` bytes.
    ///
    /// # Errors
    ///
    /// [`ObjectError`] if the object is missing or too large, or the store fails.
    pub async fn get(&self, name: &str, limit: usize) -> Result<Vec<u8>, ObjectError> {
        let (_, mut pieces) = self.stream(name).await?;
        let mut bytes = Vec::new();
        while let Some(piece) = pieces.next().await {
            bytes.extend_from_slice(&piece?);
            if bytes.len() > limit {
                return Err(ObjectError::TooLarge);
            }
        }
        Ok(bytes)
    }

    fn key(&self, name: &str) -> Key {
        let parts = name.split('/');
        parts.fold(self.prefix.clone(), object_store::path::Path::join)
    }
}

impl From<object_store::Error> for ObjectError {
    fn from(error: object_store::Error) -> Self {
        if matches!(error, object_store::Error::NotFound { .. }) {
            return Self::Missing;
        }
        Self::Failed(error)
    }
}
