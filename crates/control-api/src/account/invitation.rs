//! Routes of invitations.
#![expect(unused_qualifications, reason = "the path macro writes them")]

use crate::org::member::MemberView;
use crate::request::extract::{Body, Caller, Path, Query};
use crate::request::page::{List, PageQuery, SortBy, SortFields};
use crate::response::problem::Problem;
use crate::response::resource::Resource;
use axum::Extension;
use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use control_app::{App, Joined, NewAccount, PageOrder, SortColumn};
use control_auth::{Password, Secret};
use control_domain::{Invitation, Role};
use control_http::SessionCookie;
use control_wire::{InvitationId, OrgId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// An invitation that was not accepted yet, without its secret.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct InvitationView {
    id: InvitationId,
    org: OrgId,
    email: String,
    role: Role,
    #[schema(value_type = String, format = DateTime)]
    created_at: Timestamp,
    #[schema(value_type = String, format = DateTime)]
    expires_at: Timestamp,
    /// The user that created it, with or without an API key: it ends with this user's rights. Absent if it was
    /// created by a release that did not record the user.
    made_by: Option<UserId>,
}

/// Fields that the list can be sorted by.
const SORTED: SortFields<InvitationView> = &[
    ("created_at", SortBy::Id),
    ("email", SortBy::Text(SortColumn::Email, |view| &view.email)),
    (
        "expires_at",
        SortBy::Number(SortColumn::ExpiresAt, |view| {
            view.expires_at.as_millisecond()
        }),
    ),
];

/// Filters and page of invitations.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct InvitationQuery {
    /// Only items of this e-mail address, or of addresses that begin so if it ends in `*`; in capitals or not.
    email: Option<String>,
    /// Field to sort by, with `-` before it from the greatest: `created_at`, `email`, `expires_at`.
    #[param(pattern = "^-?(created_at|email|expires_at)$", example = "-expires_at")]
    sort: Option<String>,
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// A new invitation with its secret, which is shown this once.
#[derive(Serialize, ToSchema)]
pub(crate) struct CreatedInvitation {
    #[serde(flatten)]
    invitation: InvitationView,
    /// For `Authorization: Bearer` with `POST /api/v1/invitations/accept`, or for the body of
    /// `POST /api/v1/invitations/join`.
    secret: String,
}

/// A person to become a member.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InvitationRequest {
    /// The address that a new account signs in with.
    #[schema(format = "email", max_length = 254)]
    email: String,
    role: Role,
}

/// The secret of an invitation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct JoinRequest {
    #[schema(max_length = 256)]
    secret: String,
}

/// The account of the new user.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AcceptRequest {
    /// The address to sign in with; absent: the invitation's. Another one is needed if that one has an account.
    #[serde(default)]
    #[schema(format = "email", max_length = 254)]
    email: Option<String>,
    /// The user's name.
    #[schema(min_length = 1, max_length = 100)]
    user_name: String,
    /// The user's password.
    #[schema(min_length = 12, max_length = 256)]
    password: String,
}

/// The new member.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JoinedView {
    user: UserId,
    org: OrgId,
    role: Role,
}

impl From<&Invitation> for InvitationView {
    fn from(invitation: &Invitation) -> Self {
        let Invitation {
            id,
            org,
            email,
            role,
            created_at,
            expires_at,
            made_by,
        } = invitation;
        Self {
            id: *id,
            org: *org,
            email: email.to_string(),
            role: *role,
            created_at: *created_at,
            expires_at: *expires_at,
            made_by: made_by.map(|creator| creator.user),
        }
    }
}

/// The invitations of an organization that were not accepted yet.
#[utoipa::path(
    get, path = "/orgs/{org}/invitations", operation_id = "list_invitations", tag = "invitations",
    params(InvitationQuery), responses((status = 200, body = List<InvitationView>))
)]
pub(crate) async fn list(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Query(query): Query<InvitationQuery>,
) -> Result<Json<List<InvitationView>>, Problem> {
    let InvitationQuery {
        email,
        sort,
        limit,
        cursor,
    } = query;
    let page = PageQuery::new(sort, limit, cursor).page(SORTED, PageOrder::Oldest)?;
    let filter = page.filter_by_email(email);
    let found = app.invitations(&call, org, &filter, page.page).await?;
    let views = found.iter().map(InvitationView::from).collect();
    Ok(page.list(views, |view| view.id.0))
}

/// Creates an invitation: a one-time link, valid for seven days, that the inviter sends.
/// It replaces an earlier invitation of the same address. A removed member with the address may sign in by the identity
/// provider again. The response does not depend on whether the
/// address has an account.
#[utoipa::path(
    post, path = "/orgs/{org}/invitations", operation_id = "create_invitation",
    tag = "invitations",
    request_body = InvitationRequest, responses((status = 201, body = CreatedInvitation))
)]
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path(org): Path<OrgId>,
    Body(InvitationRequest { email, role }): Body<InvitationRequest>,
) -> Result<Resource<CreatedInvitation>, Problem> {
    let (invitation, secret) = app.create_invitation(&call, org, &email, role).await?;
    let view = CreatedInvitation {
        invitation: InvitationView::from(&invitation),
        secret: secret.reveal().to_owned(),
    };
    let path = format!("/orgs/{org}/invitations/{}", invitation.id);
    Ok(Resource::secret(1, view).at(&path))
}

/// One invitation.
#[utoipa::path(
    get, path = "/orgs/{org}/invitations/{invitation}", operation_id = "get_invitation",
    tag = "invitations", responses((status = 200, body = InvitationView))
)]
pub(crate) async fn view(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, invitation)): Path<(OrgId, InvitationId)>,
) -> Result<Resource<InvitationView>, Problem> {
    let found = app.invitation(&call, org, invitation).await?;
    Ok(Resource::found(1, InvitationView::from(&found)))
}

/// Withdraws an invitation.
#[utoipa::path(
    delete, path = "/orgs/{org}/invitations/{invitation}", operation_id = "delete_invitation",
    tag = "invitations", responses((status = 204))
)]
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Path((org, invitation)): Path<(OrgId, InvitationId)>,
) -> Result<StatusCode, Problem> {
    app.delete_invitation(&call, org, invitation).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Creates a user and a member for the bearer of an invitation, and signs the user in.
/// A user with an account joins with the invitation instead.
#[utoipa::path(
    post, path = "/invitations/accept", operation_id = "accept_invitation", tag = "invitations",
    request_body = AcceptRequest, responses((status = 201, body = JoinedView))
)]
pub(crate) async fn accept(
    State(app): State<Arc<App>>,
    Extension(cookie): Extension<SessionCookie>,
    Caller(call): Caller,
    Body(request): Body<AcceptRequest>,
) -> Result<Response, Problem> {
    let AcceptRequest {
        email,
        user_name,
        password,
    } = request;
    let account = NewAccount {
        email,
        name: user_name,
        password: Password::new(password),
    };
    let Joined {
        user,
        membership,
        session,
    } = app.accept_invitation(&call, account).await?;
    let view = JoinedView {
        user: user.id,
        org: membership.org,
        role: membership.role,
    };
    let path = format!("/orgs/{}/members/{}", view.org, view.user);
    let mut response = Resource::secret(1, view).at(&path).into_response();
    for field in cookie.set_all(&session) {
        response.headers_mut().append(header::SET_COOKIE, field);
    }
    Ok(response)
}

/// Makes the signed-in user a member of the organization that issued the invitation, regardless of
/// the invited address: the secret is the proof.
#[utoipa::path(
    post, path = "/invitations/join", operation_id = "join_organization", tag = "invitations",
    request_body = JoinRequest, responses((status = 201, body = MemberView))
)]
pub(crate) async fn join(
    State(app): State<Arc<App>>,
    Caller(call): Caller,
    Body(JoinRequest { secret }): Body<JoinRequest>,
) -> Result<Resource<MemberView>, Problem> {
    let secret = Secret::presented(&secret);
    let joined = app.join_organization(&call, &secret).await?;
    let membership = joined.value.membership;
    let path = format!("/orgs/{}/members/{}", membership.org, membership.user);
    let view = MemberView::from(&joined.value);
    Ok(Resource::created(joined.version, view).at(&path))
}
