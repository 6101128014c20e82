//! Answers that are resources: a body, with the version as `ETag`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

/// A resource as an answer.
#[derive(Debug)]
pub(crate) struct Resource<T> {
    status: StatusCode,
    version: Option<i64>,
    is_secret: bool,
    body: T,
}

impl<T> Resource<T> {
    /// 200 with the resource as it is now.
    pub(crate) fn found(version: i64, body: T) -> Self {
        Self {
            status: StatusCode::OK,
            version: Some(version),
            is_secret: false,
            body,
        }
    }

    /// 201 with the resource that was made.
    pub(crate) fn created(version: i64, body: T) -> Self {
        Self {
            status: StatusCode::CREATED,
            ..Self::found(version, body)
        }
    }

    /// 201 with a secret in it: the answer is not stored anywhere, `Idempotency-Key` included.
    pub(crate) fn secret(version: i64, body: T) -> Self {
        Self {
            is_secret: true,
            ..Self::created(version, body)
        }
    }
}

impl<T: Serialize> IntoResponse for Resource<T> {
    fn into_response(self) -> Response {
        let Self {
            status,
            version,
            is_secret,
            body,
        } = self;
        let mut response = (status, Json(body)).into_response();
        let tag = version.and_then(|version| HeaderValue::try_from(format!("\"{version}\"")).ok());
        if let Some(tag) = tag {
            response.headers_mut().insert(header::ETAG, tag);
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
