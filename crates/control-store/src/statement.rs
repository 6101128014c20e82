//! A SQL statement with its arguments.

pub(crate) mod list;

use crate::error::StoreError;
use crate::row::written;
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::Name;
use control_wire::{
    ApiKeyId, BundleId, CertificateId, DriftId, EnrolmentTokenId, IdentityId, InstanceId,
    InvitationId, ManagedCertificateId, NodeEventId, NodeId, OrgId, ProjectId, RolloutId, SecretId,
    ServiceId, SessionId, SigningKeyId, UpstreamId, UserId, WebhookDeliveryId, WebhookId,
};
use jiff::Timestamp;
use sqlx::any::{AnyArguments, AnyQueryResult, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Encode, Type, query};
use uuid::Uuid;

/// A SQL statement; arguments are bound in the order `$1`, `$2`, ….
pub(crate) struct Statement {
    query: Query<'static, Any, AnyArguments>,
    is_select: bool,
}

/// A query that writes rows.
pub(crate) trait Write {
    /// Executes the query, and counts the written rows.
    async fn write_in(self, tx: &mut Transaction) -> Result<AnyQueryResult, StoreError>;
}

impl Write for Query<'_, Any, AnyArguments> {
    async fn write_in(self, tx: &mut Transaction) -> Result<AnyQueryResult, StoreError> {
        let done = self.execute(tx.connection()).await;
        let done = done.map_err(|error| tx.note_error(error))?;
        tx.count_written(done.rows_affected());
        Ok(done)
    }
}

/// A value that can be bound as an argument.
pub(crate) trait Argument {
    type Column: for<'q> Encode<'q, Any> + Type<Any> + Send + 'static;

    fn into_column(self) -> Self::Column;
}

/// A versioned value that can be read from a row.
pub(crate) trait Record: Sized {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError>;
}

/// Starts a statement without arguments.
pub(crate) fn sql(text: &'static str) -> Statement {
    Statement {
        query: query(text),
        is_select: text.starts_with("SELECT"),
    }
}

impl Statement {
    /// Binds the next argument.
    pub(crate) fn bind(self, argument: impl Argument) -> Self {
        Self {
            query: self.query.bind(argument.into_column()),
            ..self
        }
    }

    /// Executes the statement; returns the number of rows written.
    pub(crate) async fn run(self, tx: &mut Transaction) -> Result<u64, StoreError> {
        Ok(self.query.write_in(tx).await?.rows_affected())
    }

    /// Updates or deletes the row if it has `version`, which is bound last; returns the next
    /// version.
    pub(crate) async fn write(self, tx: &mut Transaction, version: i64) -> Result<i64, StoreError> {
        let done = self.query.bind(version).write_in(tx).await?;
        written(&done)?;
        Ok(version + 1)
    }

    /// The first row of the result.
    pub(crate) async fn row(self, tx: &mut Transaction) -> Result<Option<AnyRow>, StoreError> {
        let row = self.query.fetch_optional(tx.connection()).await;
        let row = row.map_err(|error| tx.note_error(error))?;
        if !self.is_select {
            tx.count_written(u64::from(row.is_some()));
        }
        Ok(row)
    }

    /// All rows, for statements with a bounded result.
    pub(crate) async fn rows(self, tx: &mut Transaction) -> Result<Vec<AnyRow>, StoreError> {
        let rows = self.query.fetch_all(tx.connection()).await;
        let rows = rows.map_err(|error| tx.note_error(error))?;
        if !self.is_select {
            tx.count_written(u64::try_from(rows.len()).unwrap_or(u64::MAX));
        }
        Ok(rows)
    }

    /// The value in the first row.
    pub(crate) async fn one<T: Record>(
        self,
        tx: &mut Transaction,
    ) -> Result<Option<Versioned<T>>, StoreError> {
        self.row(tx).await?.as_ref().map(T::read).transpose()
    }

    /// The values of a page. Binds two further arguments: the identifier before the page, and the
    /// number of rows.
    pub(crate) async fn page<T: Record>(
        self,
        tx: &mut Transaction,
        page: Page,
    ) -> Result<Vec<Versioned<T>>, StoreError> {
        let Page {
            after,
            limit,
            order: _, // Lists that are read from both ends are made by `ListQuery`.
        } = page;
        let rows = self.bind(after.unwrap_or_default()).bind(limit);
        rows.rows(tx).await?.iter().map(T::read).collect()
    }
}

impl<T: Argument> Argument for Option<T>
where
    Option<T::Column>: for<'q> Encode<'q, Any> + Type<Any>,
{
    type Column = Option<T::Column>;

    fn into_column(self) -> Self::Column {
        self.map(T::into_column)
    }
}

/// Declares the column type of a value.
macro_rules! arguments {
    ($($type:ty => $column:ty: |$value:ident| $into:expr;)*) => {$(
        impl Argument for $type {
            type Column = $column;

            fn into_column(self) -> $column {
                let $value = self;
                $into
            }
        }
    )*};
}

macro_rules! ids {
    ($($type:ty),* $(,)?) => {
        arguments! { $($type => String: |id| id.to_string();)* }
    };
}

arguments! {
    &str => String: |text| text.to_owned();
    String => String: |text| text;
    &Name => String: |name| name.to_string();
    i64 => i64: |number| number;
    f64 => f64: |number| number;
    bool => i64: |truth| i64::from(truth);
    Timestamp => i64: |time| time.as_millisecond();
}

ids! {
    Uuid, ApiKeyId, BundleId, CertificateId, DriftId, EnrolmentTokenId, IdentityId, InstanceId, InvitationId,
    ManagedCertificateId, NodeEventId, NodeId, OrgId,
    ProjectId, RolloutId, SecretId, ServiceId, SessionId, SigningKeyId, UpstreamId, UserId, WebhookDeliveryId,
    WebhookId,
}
