//! Handling of one request: authorization, routing, common header fields.

use crate::access::{Access, is_page};
use crate::answer::correlation;
use crate::answer::{Refused, ask_browser, finish};
use crate::endpoints;
use crate::state::AdminState;
use axum::Router;
use axum::response::{IntoResponse, Response};
use http::Request;
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub(crate) struct AdminService {
    router: Router,
    access: Arc<Access>,
}

impl AdminService {
    pub(crate) fn new(state: Arc<AdminState>, access: Arc<Access>) -> Self {
        Self {
            router: endpoints::router(state),
            access,
        }
    }

    pub(crate) async fn answer(&self, request: Request<Incoming>) -> Response {
        let method = request.method().clone();
        let id = correlation::from_headers(request.headers());
        let (head, body) = request.into_parts();
        let is_page = is_page(&head);
        let response = match self.access.admit(&head) {
            Ok(()) => self.route(Request::from_parts(head, body)).await,
            Err(problem) => Refused(problem).into_response(),
        };
        let response = finish(response, &method, &id);
        if is_page {
            ask_browser(response)
        } else {
            response
        }
    }

    async fn route(&self, request: Request<Incoming>) -> Response {
        let router = TowerToHyperService::new(self.router.clone());
        match router.call(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }
}
