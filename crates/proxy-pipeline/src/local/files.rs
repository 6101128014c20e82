//! Static files, opened and read by disk threads, because both block.

use crate::exchange::Exchange;
use crate::headers::header_edits::ResponseEdits;
use crate::response::body::Body;
use crate::response::file_body::{FileBody, Waiting};
use crate::response::local_reply::OUR_NAME;
use crate::worker::disk::DiskJob;
use bytes::Bytes;
use http::header::{CONTENT_RANGE, SERVER};
use http::{HeaderValue, Method, Response};
use proxy_errors::{Detail, Problem, Reason};
use proxy_files::{FileError, FileRequest, FileResponse};
use proxy_plan::RoutePlan;
use std::future::poll_fn;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};
use tokio::sync::oneshot;

/// Responds with the file of the request's path; only GET and HEAD are allowed.
pub(crate) async fn answer(
    exchange: &mut Exchange,
    route: &RoutePlan,
    total: Option<Duration>,
) -> Result<Response<Body>, Problem> {
    let head = &exchange.head;
    if head.method != Method::GET && head.method != Method::HEAD {
        return Err(Problem::new(Reason::MethodNotAllowed, Detail::None));
    }
    let folder = exchange.active().folders.get(route.index);
    let Some(Some(folder)) = folder.map(Option::as_ref) else {
        return Err(Problem::new(Reason::InternalError, Detail::None));
    };
    let (path, query) = (head.uri.path(), head.uri.query());
    let asked = FileRequest::new(&head.method, path, query, head.headers.as_map());
    let time = &exchange.worker().time;
    let now = UNIX_EPOCH + time.unix(time.elapsed());
    let folder = Arc::clone(folder);
    let disk = exchange.worker().disks.for_root(&folder.root);
    let waiting = Waiting::new(exchange.timers(total), disk);
    let (answer, mut opened) = oneshot::channel();
    waiting.submit(DiskJob::Open {
        folder,
        asked: Box::new(asked),
        now,
        answer,
    });
    match poll_fn(|cx| waiting.poll(&mut opened, cx)).await? {
        Ok((served, piece)) => Ok(file_response(
            served,
            piece,
            exchange.response_edits(route),
            waiting,
        )),
        Err(fault) => refuse(exchange, fault),
    }
}

fn file_response(
    served: FileResponse,
    piece: Bytes,
    edits: ResponseEdits<'_>,
    waiting: Waiting,
) -> Response<Body> {
    let FileResponse {
        status,
        mut headers,
        content,
    } = served;
    headers.insert(SERVER, OUR_NAME);
    edits.apply(&mut headers);
    let body = match content {
        Some(content) => Body::file(FileBody::new(piece, content, waiting)),
        None => Body::bytes(Bytes::new()),
    };
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}

fn refuse(exchange: &mut Exchange, fault: FileError) -> Result<Response<Body>, Problem> {
    let (reason, detail) = match fault {
        FileError::Missing => (Reason::StaticNotFound, Detail::None),
        FileError::Forbidden => (Reason::StaticForbidden, Detail::None),
        FileError::PreconditionFailed => (Reason::PreconditionFailed, Detail::None),
        FileError::OutOfRange { size_bytes } => {
            let problem = Problem::new(Reason::RangeNotSatisfiable, Detail::None);
            let mut response = exchange.refuse(problem);
            if let Ok(value) = HeaderValue::try_from(format!("bytes */{size_bytes}")) {
                response.headers_mut().insert(CONTENT_RANGE, value);
            }
            return Ok(response);
        }
        FileError::Unreadable(kind) => (Reason::StaticReadFailed, Detail::text(kind.to_string())),
    };
    Err(Problem::new(reason, detail))
}
