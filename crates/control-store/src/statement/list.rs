//! List queries: SQL text composed of conditions that are constants of this crate.

use crate::error::StoreError;
use crate::statement::{Argument, Record};
use crate::store::Transaction;
use crate::versioned::{Page, PageOrder, Sort, SortColumn, SortValue, Versioned};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::{Arguments, AssertSqlSafe, query_with};
use std::fmt::Write;

/// A list query: columns, tables, and conditions. Values are always arguments, never part of the
/// text.
pub(crate) struct ListQuery {
    text: String,
    arguments: AnyArguments,
    count: usize,
    fault: bool,
}

/// Columns that a list can be sorted by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SortColumns {
    /// Identifier column, which also orders rows with equal values.
    pub(crate) id: &'static str,
    /// Columns or expressions; none may be `NULL`, which would end a list early.
    pub(crate) columns: &'static [(SortColumn, &'static str)],
}

impl SortColumns {
    /// The `id` column alone.
    pub(crate) const BY_ID: Self = Self {
        id: "id",
        columns: &[],
    };
}

impl ListQuery {
    /// Starts a list; `select` ends with `WHERE` and a first condition: its single `?` stands for
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

    /// Adds a condition if `argument` is present; each `?` stands for it.
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

    /// Adds a condition on a name: equal to `name`, or with its prefix if it ends in `*`.
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

    /// Runs the query for a page ordered by the identifier in the column `id`.
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

    /// Runs the query for a page ordered by `sort`, or by identifier without one.
    ///
    /// # Errors
    ///
    /// [`StoreError`] if the database fails, or the list cannot be sorted by this column.
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

    /// Like [`ListQuery::sorted`], but returns rows.
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
        // Compares texts bytewise on both databases: PostgreSQL's default is the order of the
        // server's language.
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

    /// Adds the condition that `column` has one of the values; without values, no row matches.
    pub(crate) fn one_of<A: Argument>(
        self,
        column: &'static str,
        values: impl IntoIterator<Item = A>,
    ) -> Self {
        let Self { mut text, .. } = self;
        // The empty text matches no identifier, and keeps the list from being empty. Writing to a
        // `String` cannot fail.
        _ = write!(text, " AND {column} IN (''");
        let mut list = Self { text, ..self };
        for value in values {
            list = list.push(", ?", value);
        }
        list.text.push(')');
        list
    }

    /// Runs a grouped query with at most `limit` rows. `tail` groups and orders, and ends with
    /// `LIMIT ?`.
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
        // All parts of the text are constants of this crate.
        let query = query_with(AssertSqlSafe(text), arguments);
        Ok(query.fetch_all(tx.connection()).await?)
    }

    /// Appends text in which each `?` stands for `argument`.
    fn push(mut self, text: &str, argument: impl Argument) -> Self {
        self.count += 1;
        let mut parts = text.split('?');
        self.text.push_str(parts.next().unwrap_or_default());
        for part in parts {
            // Writing to a `String` cannot fail.
            _ = write!(self.text, "${}{part}", self.count);
        }
        self.fault |= self.arguments.add(argument.into_column()).is_err();
        self
    }
}
