//! Lists with filters: a text for each, put together from conditions of this crate.

use crate::error::StoreError;
use crate::statement::{Argument, Record};
use crate::store::Transaction;
use crate::versioned::{Page, PageOrder, Sort, SortColumn, SortValue, Versioned};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Arguments, AssertSqlSafe, query_with};
use std::fmt::Write;

/// A list query: columns, tables, and conditions. Values are arguments, never text.
pub(crate) struct ListQuery {
    text: String,
    arguments: AnyArguments,
    count: usize,
    fault: bool,
}

/// Columns that a list can be sorted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortColumns {
    /// The column of the identifier, which also orders equal values.
    pub(crate) id: &'static str,
    /// Columns or expressions without `NULL`, which would end a list early.
    pub(crate) columns: &'static [(SortColumn, &'static str)],
}

impl ListQuery {
    /// `select` ends with `WHERE` and a first condition with one `?`, the placeholder of
    /// `argument`.
    pub(crate) fn new(select: &str, argument: impl Argument) -> Self {
        let empty = Self {
            text: String::new(),
            arguments: AnyArguments::default(),
            count: 0,
            fault: false,
        };
        empty.push(select, argument)
    }

    /// Adds a condition in which each `?` is a placeholder of `argument`, if present.
    pub(crate) fn and<A: Argument>(self, condition: &'static str, argument: Option<A>) -> Self {
        match argument {
            None => self,
            Some(argument) => {
                let Self { mut text, .. } = self;
                text.push_str(" AND ");
                Self { text, ..self }.push(condition, argument)
            }
        }
    }

    /// Adds a condition on a name: exactly `name`, or a prefix if it ends in `*`.
    pub(crate) fn named(self, column: &'static str, name: Option<&str>) -> Self {
        let Some(name) = name else { return self };
        let Self { mut text, .. } = self;
        text.push_str(" AND ");
        let list = Self { text, ..self };
        match name.strip_suffix('*') {
            None => list.push(&format!("{column} = ?"), name),
            Some(begin) => list.push(&format!("SUBSTR({column}, 1, LENGTH(?)) = ?"), begin),
        }
    }

    /// The rows of a page, by their identifiers in the column `id`.
    pub(crate) async fn page<T: Record>(
        self,
        tx: &mut Transaction,
        id: &'static str,
        page: Page,
    ) -> Result<Vec<Versioned<T>>, StoreError> {
        let rows = self.page_rows(tx, id, page).await?;
        rows.iter().map(T::read).collect()
    }

    async fn page_rows(
        self,
        tx: &mut Transaction,
        id: &'static str,
        page: Page,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let Page {
            after,
            limit,
            order,
        } = page;
        let (comparison, direction) = match order {
            PageOrder::Oldest => (">", ""),
            PageOrder::Newest => ("<", " DESC"),
        };
        let query = match after {
            None => self,
            Some(after) => {
                let Self { mut text, .. } = self;
                text.push_str(" AND ");
                let condition = format!("{id} {comparison} ?");
                Self { text, ..self }.push(&condition, after)
            }
        };
        let tail = format!(" ORDER BY {id}{direction} LIMIT ?");
        query.push(&tail, limit).rows(tx).await
    }

    /// The rows of a page in the order of `sort`, or by their identifiers without one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database fails, or the list has no such column.
    pub(crate) async fn sorted<T: Record>(
        self,
        tx: &mut Transaction,
        columns: &SortColumns,
        sort: Option<&Sort>,
        page: Page,
    ) -> Result<Vec<Versioned<T>>, StoreError> {
        let rows = self.sorted_rows(tx, columns, sort, page).await?;
        rows.iter().map(T::read).collect()
    }

    /// Like [`ListQuery::sorted`], as rows.
    pub(crate) async fn sorted_rows(
        self,
        tx: &mut Transaction,
        columns: &SortColumns,
        sort: Option<&Sort>,
        page: Page,
    ) -> Result<Vec<AnyRow>, StoreError> {
        let id = columns.id;
        let Some(sort) = sort else {
            return self.page_rows(tx, id, page).await;
        };
        let mut known = columns.columns.iter();
        let found = known.find(|(column, _)| *column == sort.column);
        let (_, column) = found.ok_or(StoreError::Corrupt("sort"))?;
        // Texts have the order of their bytes on both databases: PostgreSQL has that of the server's language.
        let column = if sort.column.is_text() && !tx.is_sqlite() {
            format!("{column} COLLATE \"C\"")
        } else {
            (*column).to_owned()
        };
        let (comparison, direction) = if sort.descending {
            ("<", " DESC")
        } else {
            (">", "")
        };
        let query = match (&sort.after, page.after) {
            (Some(value), Some(after)) => {
                let Self { mut text, .. } = self;
                text.push_str(" AND ");
                let condition = format!("({column}, {id}) {comparison} (?");
                let query = Self { text, ..self };
                let query = match value {
                    SortValue::Text(text) => query.push(&condition, text.as_str()),
                    SortValue::Number(number) => query.push(&condition, *number),
                };
                query.push(", ?)", after)
            }
            _ => self,
        };
        let tail = format!(" ORDER BY {column}{direction}, {id}{direction} LIMIT ?");
        query.push(&tail, page.limit).rows(tx).await
    }

    /// Adds the condition that `column` has one of the values; without any, no row has.
    pub(crate) fn one_of<A: Argument>(
        self,
        column: &'static str,
        values: impl IntoIterator<Item = A>,
    ) -> Self {
        let Self { mut text, .. } = self;
        // The empty text is not an identifier, and keeps the list from being empty. A `String` takes every text.
        _ = write!(text, " AND {column} IN (''");
        let mut list = Self { text, ..self };
        for value in values {
            list = list.push(", ?", value);
        }
        list.text.push(')');
        list
    }

    /// The rows of groups, at most `limit`. `tail` groups and orders, and ends with `LIMIT ?`.
    pub(crate) async fn groups(
        self,
        tx: &mut Transaction,
        tail: &'static str,
        limit: i64,
    ) -> Result<Vec<AnyRow>, StoreError> {
        self.push(tail, limit).rows(tx).await
    }

    async fn rows(self, tx: &mut Transaction) -> Result<Vec<AnyRow>, StoreError> {
        let Self {
            text,
            arguments,
            count: _,
            fault,
        } = self;
        if fault {
            return Err(StoreError::Corrupt("argument"));
        }
        // No part of the text comes from outside this crate.
        let query = query_with(AssertSqlSafe(text), arguments);
        Ok(query.fetch_all(tx.connection()).await?)
    }

    /// Adds text in which each `?` is a placeholder of `argument`.
    fn push(mut self, text: &str, argument: impl Argument) -> Self {
        self.count += 1;
        let mut parts = text.split('?');
        self.text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            // A `String` takes every text.
            _ = write!(self.text, "${}{part}", self.count);
        }
        self.fault |= self.arguments.add(argument.into_column()).is_err();
        self
    }
}
