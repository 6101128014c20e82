//! Page of the installation: health, database, versions, background jobs.

use crate::frame::{Frame, NavEntry, show as shown};
use crate::request::failure::Failure;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::component::{RelativeTime, Status, Tone, when};
use crate::view::phrase::{number, short};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{InstallationStatus, Lease};
use jiff::{SignedDuration, Timestamp};
use std::sync::Arc;

/// Time after a lease's end before its job counts as late; jobs run at least every half minute.
const LATE_AFTER: SignedDuration = SignedDuration::from_mins(2);
/// Lease of a job that runs only when there are events to queue.
const ON_DEMAND: &str = "webhooks";
/// Prefix of leases for issuances, which exist only while one runs.
const ISSUANCE: &str = "certificate of ";

#[derive(Template)]
#[template(path = "installation.html")]
struct InstallationPage {
    frame: Frame,
    heading: &'static str,
    version: &'static str,
    database: &'static str,
    schema: i64,
    database_size: String,
    archive_size: String,
    writes: Status,
    clock: Status,
    clock_offset: String,
    work: Vec<BackgroundTask>,
}

/// A background job.
struct BackgroundTask {
    name: String,
    status: Status,
    replica: String,
    /// Whether the lease is held now; otherwise the time is the end of the last run.
    is_held: bool,
    until: RelativeTime,
}

/// Shows the status of the installation.
pub(crate) async fn show(State(ui): State<Arc<Ui>>, caller: Caller) -> Result<Response, Failure> {
    let frame =
        Frame::personal(&ui, &caller, NavEntry::Installation.titled("Installation")).await?;
    let status = ui.app.installation_status(&caller.call).await?;
    let now = caller.visit.now;
    let heading = heading(&status, now);
    let InstallationStatus {
        version,
        database,
        schema,
        database_bytes,
        archive_bytes,
        is_writable,
        is_clock_right,
        clock_offset,
        leases,
    } = status;
    let health = |is_healthy, healthy: &'static str, unhealthy: &'static str| {
        if is_healthy {
            Status::new(Tone::Ok, "ok", healthy)
        } else {
            Status::new(Tone::Bad, "bad", unhealthy)
        }
    };
    Ok(shown(&InstallationPage {
        frame: frame.live("/events?pulse"),
        heading,
        version,
        database: match database {
            "sqlite" => "SQLite",
            _ => "PostgreSQL",
        },
        schema,
        database_size: mebibytes(database_bytes),
        archive_size: mebibytes(archive_bytes),
        writes: health(is_writable, "Taken", "Refused"),
        clock: health(is_clock_right, "Right", "Wrong"),
        clock_offset: clock_offset.map_or_else(String::new, |offset| {
            format!("{} ms from the database’s", offset.as_millis())
        }),
        work: leases
            .into_iter()
            .map(|lease| background_task(lease, now))
            .collect(),
    }))
}

fn heading(status: &InstallationStatus, now: Timestamp) -> &'static str {
    if !status.is_writable {
        return "The database refuses writes.";
    }
    if !status.is_clock_right {
        return "The clock of this replica is wrong, so it does not serve.";
    }
    if status.leases.iter().any(|lease| is_late(lease, now)) {
        return "Background work is late.";
    }
    "The control plane is healthy."
}

/// Returns true if a job is overdue; jobs on demand never are.
fn is_late(lease: &Lease, now: Timestamp) -> bool {
    let is_on_demand = lease.name == ON_DEMAND || lease.name.starts_with(ISSUANCE);
    !is_on_demand && lease.ends_at + LATE_AFTER < now
}

fn background_task(lease: Lease, now: Timestamp) -> BackgroundTask {
    let status = if is_late(&lease, now) {
        Status::new(Tone::Warn, "warn", "Late")
    } else if lease.ends_at + LATE_AFTER < now {
        Status::new(Tone::Off, "wait", "Nothing to do")
    } else {
        Status::new(Tone::Ok, "ok", "On time")
    };
    let Lease {
        name,
        holder,
        ends_at,
    } = lease;
    let words = match name.as_str() {
        "scheduler" => "Steps of rollouts",
        "drift" => "Look for drift",
        "housekeeping" => "Deletion of ended records",
        "archives" => "Sweep of archives",
        "audit" => "Archives of the audit log",
        name if name.starts_with(ISSUANCE) => "Obtaining a certificate",
        ON_DEMAND => "Events for webhooks",
        other => other,
    };
    BackgroundTask {
        name: words.to_owned(),
        status,
        replica: short(holder),
        is_held: now < ends_at,
        until: when(ends_at, now),
    }
}

fn mebibytes(bytes: i64) -> String {
    const MEBIBYTE: i64 = 1024 * 1024;
    format!(
        "{} MiB",
        number(bytes.saturating_add(MEBIBYTE - 1) / MEBIBYTE)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn the_heading_names_the_worst() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let status = |name: &str, is_writable, is_clock_right, minutes| InstallationStatus {
            version: "0.1.0",
            database: "sqlite",
            schema: 25,
            database_bytes: 1,
            archive_bytes: 0,
            is_writable,
            is_clock_right,
            clock_offset: None,
            leases: vec![Lease {
                name: name.to_owned(),
                holder: Uuid::nil(),
                ends_at: now - SignedDuration::from_mins(minutes),
            }],
        };
        let reported = |is_writable, is_clock_right, minutes| {
            let status = status("scheduler", is_writable, is_clock_right, minutes);
            heading(&status, now)
        };
        assert_eq!(reported(true, true, 1), "The control plane is healthy.");
        assert_eq!(reported(true, true, 3), "Background work is late.");
        assert_eq!(
            reported(true, false, 3),
            "The clock of this replica is wrong, so it does not serve."
        );
        assert_eq!(reported(false, false, 3), "The database refuses writes.");
        let idle = status("webhooks", true, true, 600);
        assert_eq!(heading(&idle, now), "The control plane is healthy.");
        let row = background_task(idle.leases[0].clone(), now);
        assert_eq!(
            (row.name.as_str(), &*row.status.word),
            ("Events for webhooks", "Nothing to do")
        );
        assert_eq!(mebibytes(1), "1 MiB");
    }

    #[test]
    fn a_turn_that_has_ended_is_not_said_to_run() {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(1);
        let lease = |seconds| Lease {
            name: "drift".to_owned(),
            holder: Uuid::nil(),
            ends_at: now + SignedDuration::from_secs(seconds),
        };
        let (during, between) = (
            background_task(lease(5), now),
            background_task(lease(-5), now),
        );
        assert_eq!((during.is_held, &*during.status.word), (true, "On time"));
        assert_eq!((between.is_held, &*between.status.word), (false, "On time"));
    }
}
