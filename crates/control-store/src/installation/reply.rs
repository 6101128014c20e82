//! Stored responses for repeated requests (`Idempotency-Key`).
//!
//! A key is reserved before the command, marked in the command's transaction, and gets the response
//! afterwards. After a crash, the row shows the last completed step.

use crate::error::StoreError;
use crate::row::{optional_id, optional_text, text, truth};
use crate::statement::{Write, sql as statement};
use crate::store::Transaction;
use control_domain::Tenant;
use jiff::{SignedDuration, Timestamp};
use sqlx::{Row, query};
use uuid::Uuid;

/// Lifetime of a stored response.
const REPLY_LIFETIME: SignedDuration = SignedDuration::from_hours(24);
/// Age at which an uncommitted reservation is void: its command can no longer commit.
const MAX_UNCOMMITTED_AGE: SignedDuration = SignedDuration::from_mins(2);

/// A stored response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Status of the response.
    pub status: u16,
    /// Value of `ETag`.
    pub etag: Option<String>,
    /// Value of `Location`, or the path of the resource if the body was too large to be stored.
    pub location: Option<String>,
    /// Response body; `None` if it was too large, or contained a secret, which is shown once and
    /// never stored.
    pub body: Option<String>,
}

/// State of an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reservation {
    /// The key is reserved by this request, which executes the command.
    Taken,
    /// An earlier request with this key has no response yet.
    Pending,
    /// An earlier request was executed, but its response was not stored.
    Lost,
    /// An earlier request with this key had a different body.
    Other,
    /// An earlier request has a stored response.
    Replied {
        /// Response of the first execution.
        reply: Reply,
        /// Tenant of the change; `None` if the change belongs to no organization.
        tenant: Option<Tenant>,
    },
}

impl Transaction {
    /// Reserves `name` for the request with this hash; `reservation` is new and random.
    pub async fn reserve_reply(
        &mut self,
        name: &str,
        request_hash: &str,
        reservation: Uuid,
        now: Timestamp,
    ) -> Result<Reservation, StoreError> {
        let sql = "INSERT INTO replies (name, request_hash, reservation, created_at, committed)
                   VALUES ($1, $2, $3, $4, 0)
                   ON CONFLICT (name) DO UPDATE SET
                     request_hash = excluded.request_hash, reservation = excluded.reservation,
                     created_at = excluded.created_at, committed = 0,
                     status = NULL, etag = NULL, location = NULL, body = NULL,
                     org_id = NULL, project_id = NULL
                   WHERE replies.created_at <= $5
                     OR (replies.committed = 0 AND replies.status IS NULL
                         AND replies.created_at <= $6)";
        let done = query(sql)
            .bind(name)
            .bind(request_hash)
            .bind(reservation.to_string())
            .bind(now.as_millisecond())
            .bind((now - REPLY_LIFETIME).as_millisecond())
            .bind((now - MAX_UNCOMMITTED_AGE).as_millisecond())
            .write_in(self)
            .await?;
        if done.rows_affected() == 1 {
            return Ok(Reservation::Taken);
        }
        let sql = "SELECT request_hash, committed, status, etag, location, body, org_id, project_id
                   FROM replies WHERE name = $1";
        let row = query(sql).bind(name).fetch_one(self.connection()).await?;
        if text(&row, "request_hash")? != request_hash {
            return Ok(Reservation::Other);
        }
        let status: Option<i64> = row.try_get("status")?;
        let Some(status) = status else {
            let lost = truth(&row, "committed")?;
            return Ok(if lost {
                Reservation::Lost
            } else {
                Reservation::Pending
            });
        };
        let reply = Reply {
            status: u16::try_from(status).map_err(|_| StoreError::Corrupt("status"))?,
            etag: optional_text(&row, "etag")?,
            location: optional_text(&row, "location")?,
            body: optional_text(&row, "body")?,
        };
        let project = optional_id(&row, "project_id")?;
        let org = optional_id(&row, "org_id")?;
        let tenant = org.map(|org| Tenant { org, project });
        Ok(Reservation::Replied { reply, tenant })
    }

    /// Returns true if the resource at `path` was deleted; a verb or a list at the end of the path
    /// is ignored. False for a path without a known noun.
    pub async fn is_gone(&mut self, path: &str) -> Result<bool, StoreError> {
        let parts: Vec<&str> = path.rsplit('/').collect();
        for (index, pair) in parts.windows(2).enumerate() {
            if let [id, noun] = pair
                && Uuid::try_parse(id).is_ok()
                && let Some(find) = find_by_id(noun)
            {
                let find = statement(find).bind(*id);
                let find = match (*noun, parts.get(index + 2)) {
                    ("members", Some(org)) => find.bind(*org),
                    _ => find,
                };
                return Ok(find.row(self).await?.is_none());
            }
        }
        Ok(false)
    }

    /// Marks the key as executed, in the transaction of its command. `tenant` owns the change.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if another request has taken the key.
    pub async fn commit_reply(
        &mut self,
        reservation: Uuid,
        tenant: Option<Tenant>,
    ) -> Result<(), StoreError> {
        let sql = "UPDATE replies SET committed = 1, org_id = $2, project_id = $3
                   WHERE reservation = $1";
        let project = tenant.and_then(|tenant| tenant.project);
        let done = statement(sql)
            .bind(reservation)
            .bind(tenant.map(|tenant| tenant.org))
            .bind(project)
            .run(self)
            .await?;
        match done {
            0 => Err(StoreError::Conflict),
            _ => Ok(()),
        }
    }

    /// Stores the response for repetitions of the request.
    pub async fn keep_reply(&mut self, reservation: Uuid, reply: &Reply) -> Result<(), StoreError> {
        let Reply {
            status,
            etag,
            location,
            body,
        } = reply;
        let sql = "UPDATE replies SET status = $2, etag = $3, location = $4, body = $5
                   WHERE reservation = $1";
        query(sql)
            .bind(reservation.to_string())
            .bind(i64::from(*status))
            .bind(etag.as_deref())
            .bind(location.as_deref())
            .bind(body.as_deref())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// Releases the key of a command that changed nothing.
    pub async fn release_reply(&mut self, reservation: Uuid) -> Result<(), StoreError> {
        query("DELETE FROM replies WHERE reservation = $1 AND committed = 0")
            .bind(reservation.to_string())
            .write_in(self)
            .await?;
        Ok(())
    }

    /// Deletes at most `limit` responses older than 24 hours; returns their number.
    pub async fn purge_replies(&mut self, now: Timestamp, limit: i64) -> Result<u64, StoreError> {
        let sql = "DELETE FROM replies WHERE name IN
                   (SELECT name FROM replies WHERE created_at <= $1 ORDER BY created_at LIMIT $2)
                   AND created_at <= $1";
        let done = query(sql)
            .bind((now - REPLY_LIFETIME).as_millisecond())
            .bind(limit)
            .write_in(self)
            .await?;
        Ok(done.rows_affected())
    }
}

/// Statement that finds a resource by the noun and identifier in a path; a member also by the
/// organization.
fn find_by_id(noun: &str) -> Option<&'static str> {
    Some(match noun {
        "orgs" => "SELECT id FROM orgs WHERE id = $1",
        "projects" => "SELECT id FROM projects WHERE id = $1",
        "invitations" => "SELECT id FROM invitations WHERE id = $1",
        "signing-keys" => "SELECT id FROM signing_keys WHERE id = $1",
        "enrolment-tokens" => "SELECT id FROM enrolment_tokens WHERE id = $1",
        "nodes" => "SELECT id FROM nodes WHERE id = $1",
        "bundles" => "SELECT id FROM bundles WHERE id = $1",
        "rollouts" => "SELECT id FROM rollouts WHERE id = $1",
        "services" => "SELECT id FROM services WHERE id = $1",
        "upstreams" => "SELECT id FROM upstreams WHERE id = $1",
        "certificates" => "SELECT id FROM certificates WHERE id = $1",
        "managed-certificates" => "SELECT id FROM managed_certificates WHERE id = $1",
        "webhooks" => "SELECT id FROM webhooks WHERE id = $1",
        "drift" => "SELECT id FROM drift WHERE id = $1",
        "api-keys" => "SELECT id FROM api_keys WHERE id = $1",
        "members" => "SELECT user_id FROM memberships WHERE user_id = $1 AND org_id = $2",
        _ => return None,
    })
}
