//! A statement with its arguments, and the ways in which nouns use one.

use crate::error::StoreError;
use crate::row::written;
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::Name;
use control_wire::{
    ApiKeyId, BundleId, CertificateId, DriftId, EnrolmentTokenId, InvitationId, NodeEventId,
    NodeId, OrgId, ProjectId, RolloutId, SecretId, ServiceId, SessionId, SigningKeyId, UpstreamId,
    UserId,
};
use jiff::Timestamp;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, Encode, Type, query};
use uuid::Uuid;

/// A statement; its arguments are bound in the order `$1`, `$2`, ….
pub(crate) struct Statement(Query<'static, Any, AnyArguments>);

/// A value that can be an argument.
pub(crate) trait Argument {
    /// What the column holds.
    type Column: for<'q> Encode<'q, Any> + Type<Any> + Send + 'static;

    fn into_column(self) -> Self::Column;
}

/// A value that is read from a row, with its version.
pub(crate) trait Record: Sized {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError>;
}

/// A statement without arguments yet.
pub(crate) fn sql(text: &'static str) -> Statement {
    Statement(query(text))
}

impl Statement {
    /// Binds the next argument.
    pub(crate) fn bind(self, argument: impl Argument) -> Self {
        Self(self.0.bind(argument.into_column()))
    }

    /// Runs it; gives the number of rows written.
    pub(crate) async fn run(self, tx: &mut Transaction) -> Result<u64, StoreError> {
        Ok(self.0.execute(tx.connection()).await?.rows_affected())
    }

    /// Updates or deletes the row that had `version`, bound last; gives the next version.
    pub(crate) async fn write(self, tx: &mut Transaction, version: i64) -> Result<i64, StoreError> {
        let done = self.0.bind(version).execute(tx.connection()).await?;
        written(&done)?;
        Ok(version + 1)
    }

    /// The first row, if there is one.
    pub(crate) async fn row(self, tx: &mut Transaction) -> Result<Option<AnyRow>, StoreError> {
        Ok(self.0.fetch_optional(tx.connection()).await?)
    }

    /// All rows: for statements that bound their number.
    pub(crate) async fn rows(self, tx: &mut Transaction) -> Result<Vec<AnyRow>, StoreError> {
        Ok(self.0.fetch_all(tx.connection()).await?)
    }

    /// The value in the first row, if there is one.
    pub(crate) async fn one<T: Record>(
        self,
        tx: &mut Transaction,
    ) -> Result<Option<Versioned<T>>, StoreError> {
        self.row(tx).await?.as_ref().map(T::read).transpose()
    }

    /// The values of a page. Bound last: the identifier before the page, and the number of rows.
    pub(crate) async fn page<T: Record>(
        self,
        tx: &mut Transaction,
        page: Page,
    ) -> Result<Vec<Versioned<T>>, StoreError> {
        let Page { after, limit } = page;
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

/// Declares what a value is in its column.
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
    Uuid, ApiKeyId, BundleId, CertificateId, DriftId, EnrolmentTokenId, InvitationId, NodeEventId, NodeId, OrgId,
    ProjectId, RolloutId, SecretId, ServiceId, SessionId, SigningKeyId, UpstreamId, UserId,
}
