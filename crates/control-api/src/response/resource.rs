//! Responses that represent a resource, with an `ETag` that begins with its version.

use crate::route::PREFIX;
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_auth::sha256_hex;
use serde::Serialize;
use std::fmt;

/// A resource as a response.
#[derive(Debug)]
pub(crate) struct Resource<T> {
    status: StatusCode,
    /// `ETag` without quotes.
    tag: Option<String>,
    /// Path of the resource, including `/api/v1`.
    location: Option<String>,
    is_secret: bool,
    body: T,
}

impl<T> Resource<T> {
    /// 200 with the current resource.
    pub(crate) fn found(version: i64, body: T) -> Self {
        Self::tagged(version.to_string(), body)
    }

    /// 200 with a resource that has parts which change without a new version, by time or through
    /// another row. The `ETag` also contains a hash of the body, 16 hexadecimal digits.
    pub(crate) fn composed(version: i64, body: T) -> Self
    where
        T: Serialize,
    {
        let bytes = serde_json::to_vec(&body).unwrap_or_default();
        let mut digest = sha256_hex(&bytes);
        digest.truncate(16);
        Self::found(version, body).with_revision(digest)
    }

    /// 200 with an `ETag` that is not a version.
    pub(crate) fn tagged(tag: String, body: T) -> Self {
        Self {
            status: StatusCode::OK,
            tag: Some(tag),
            location: None,
            is_secret: false,
            body,
        }
    }

    /// Appends a revision to the `ETag`; `If-Match` compares only the version.
    pub(crate) fn with_revision(self, revision: impl fmt::Display) -> Self {
        let tag = self.tag.map(|version| format!("{version}-{revision}"));
        Self { tag, ..self }
    }

    /// 201 with the created resource.
    pub(crate) fn created(version: i64, body: T) -> Self {
        Self {
            status: StatusCode::CREATED,
            ..Self::found(version, body)
        }
    }

    /// 201 with a secret in the body, which is therefore not stored for `Idempotency-Key`.
    pub(crate) fn secret(version: i64, body: T) -> Self {
        Self {
            is_secret: true,
            ..Self::created(version, body)
        }
    }

    /// Adds the `Location` of the created resource, a path below `/api/v1`.
    pub(crate) fn at(self, path: &str) -> Self {
        Self {
            location: Some(format!("{PREFIX}{path}")),
            ..self
        }
    }

    /// 200 without an `ETag`, for resources without a version.
    pub(crate) fn untagged(body: T) -> Self {
        Self {
            status: StatusCode::OK,
            tag: None,
            location: None,
            is_secret: false,
            body,
        }
    }

    /// Sets an `ETag` that is not a version.
    pub(crate) fn with_tag(self, tag: String) -> Self {
        Self {
            tag: Some(tag),
            ..self
        }
    }

    /// 200 with an issued secret that is not a resource.
    pub(crate) fn issued(body: T) -> Self {
        Self {
            status: StatusCode::OK,
            tag: None,
            location: None,
            is_secret: true,
            body,
        }
    }
}

impl<T: Serialize> IntoResponse for Resource<T> {
    fn into_response(self) -> Response {
        let Self {
            status,
            tag,
            location,
            is_secret,
            body,
        } = self;
        let mut response = (status, Json(body)).into_response();
        let tag = tag.and_then(|tag| HeaderValue::try_from(format!("\"{tag}\"")).ok());
        if let Some(tag) = tag {
            response.headers_mut().insert(header::ETAG, tag);
        }
        let location = location.and_then(|path| HeaderValue::try_from(path).ok());
        if let Some(location) = location {
            response.headers_mut().insert(header::LOCATION, location);
        }
        if is_secret {
            let no_store = HeaderValue::from_static("no-store");
            response
                .headers_mut()
                .insert(header::CACHE_CONTROL, no_store);
        }
        response
    }
}
