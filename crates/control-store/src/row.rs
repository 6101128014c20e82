//! Conversion of columns to domain values.

pub(crate) mod traffic;

use crate::error::StoreError;
use crate::versioned::Versioned;
use control_domain::{Creator, Role};
use jiff::Timestamp;
use serde::de::DeserializeOwned;
use sqlx::Row;
use sqlx::any::{AnyQueryResult, AnyRow};
use std::net::IpAddr;
use uuid::Uuid;

pub(crate) fn text(row: &AnyRow, column: &'static str) -> Result<String, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn optional_text(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<String>, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn number(row: &AnyRow, column: &'static str) -> Result<i64, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn optional_number(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<i64>, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn real(row: &AnyRow, column: &'static str) -> Result<f64, StoreError> {
    Ok(row.try_get(column)?)
}

pub(crate) fn json<T: DeserializeOwned>(
    row: &AnyRow,
    column: &'static str,
) -> Result<T, StoreError> {
    serde_json::from_str(&text(row, column)?).map_err(|_| StoreError::Corrupt(column))
}

pub(crate) fn optional_json<T: DeserializeOwned>(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    let text = optional_text(row, column)?;
    let value = text.map(|text| serde_json::from_str(&text)).transpose();
    value.map_err(|_| StoreError::Corrupt(column))
}

pub(crate) fn truth(row: &AnyRow, column: &'static str) -> Result<bool, StoreError> {
    Ok(number(row, column)? != 0)
}

pub(crate) fn id<T: From<Uuid>>(row: &AnyRow, column: &'static str) -> Result<T, StoreError> {
    let id: Uuid = text(row, column)?
        .parse()
        .map_err(|_| StoreError::Corrupt(column))?;
    Ok(id.into())
}

pub(crate) fn optional_id<T: From<Uuid>>(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<T>, StoreError> {
    let Some(text) = optional_text(row, column)? else {
        return Ok(None);
    };
    let id: Uuid = text.parse().map_err(|_| StoreError::Corrupt(column))?;
    Ok(Some(id.into()))
}

pub(crate) fn address(row: &AnyRow, column: &'static str) -> Result<Option<IpAddr>, StoreError> {
    let text = optional_text(row, column)?;
    let address = text.map(|text| text.parse()).transpose();
    address.map_err(|_| StoreError::Corrupt(column))
}

pub(crate) fn time(row: &AnyRow, column: &'static str) -> Result<Timestamp, StoreError> {
    let millis = number(row, column)?;
    Timestamp::from_millisecond(millis).map_err(|_| StoreError::Corrupt(column))
}

pub(crate) fn optional_time(
    row: &AnyRow,
    column: &'static str,
) -> Result<Option<Timestamp>, StoreError> {
    let millis: Option<i64> = row.try_get(column)?;
    millis
        .map(Timestamp::from_millisecond)
        .transpose()
        .map_err(|_| StoreError::Corrupt(column))
}

/// Parses an enumeration, such as a role or a state, by its name.
pub(crate) fn named<T>(
    row: &AnyRow,
    column: &'static str,
    from_name: fn(&str) -> Option<T>,
) -> Result<T, StoreError> {
    from_name(&text(row, column)?).ok_or(StoreError::Corrupt(column))
}

/// Creator of a credential, from the columns `made_by`, `maker_role` and `maker_project_role`; of
/// two roles the higher one counts.
pub(crate) fn creator(row: &AnyRow) -> Result<Option<Creator>, StoreError> {
    let Some(user) = optional_id(row, "made_by")? else {
        return Ok(None);
    };
    let org_role = optional_role(row, "maker_role")?;
    let project_role = optional_role(row, "maker_project_role")?;
    let role = org_role.map(|own| project_role.map_or(own, |role| role.max(own)));
    Ok(Some(Creator { user, role }))
}

fn optional_role(row: &AnyRow, column: &'static str) -> Result<Option<Role>, StoreError> {
    let name = optional_text(row, column)?;
    let role = name.map(|name| Role::from_name(&name).ok_or(StoreError::Corrupt(column)));
    role.transpose()
}

pub(crate) fn versioned<T>(value: T, row: &AnyRow) -> Result<Versioned<T>, StoreError> {
    let version = number(row, "version")?;
    Ok(Versioned { value, version })
}

/// Returns [`StoreError::Stale`] unless a row of the expected version was written.
pub(crate) fn written(done: &AnyQueryResult) -> Result<(), StoreError> {
    written_rows(done.rows_affected())
}

/// Returns [`StoreError::Stale`] if no row was written.
pub(crate) fn written_rows(count: u64) -> Result<(), StoreError> {
    match count {
        0 => Err(StoreError::Stale),
        _ => Ok(()),
    }
}
