//! Lists in pages: sort orders, cursors, limits.

use crate::response::problem::Problem;
use axum::Json;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use control_app::{ListFilter, Page, PageOrder, Sort, SortColumn, SortValue};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// Order of a list by the creation of its items.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderName {
    Oldest,
    Newest,
}

/// A page of a list.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct List<T> {
    items: Vec<T>,
    /// Cursor of the next page; null on the last page.
    next_cursor: Option<String>,
}

/// Query parameters of a list with one order.
#[derive(Clone, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct CursorQuery {
    /// Maximum number of items, 1 to 200; 50 if absent.
    #[param(minimum = 1, maximum = 200, default = 50)]
    limit: Option<u32>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// Query parameters of a list: order and page.
#[derive(Clone, Debug)]
pub(crate) struct PageQuery {
    pub(crate) sort: Option<String>,
    pub(crate) order: Option<OrderName>,
    pub(crate) limit: Option<u32>,
    pub(crate) cursor: Option<String>,
}

/// How to sort by a field.
#[derive(Debug)]
pub(crate) enum SortBy<T> {
    /// By identifier, which grows with the time of creation.
    Id,
    Text(SortColumn, fn(&T) -> &str),
    Number(SortColumn, fn(&T) -> i64),
}

/// Fields that `sort` may name.
pub(crate) type SortFields<T> = &'static [(&'static str, SortBy<T>)];

/// A page of a list, with its sort order.
#[derive(Debug)]
pub(crate) struct ListPage<T: 'static> {
    pub(crate) page: Page,
    /// Sort order; `None` sorts by identifier.
    pub(crate) sort: Option<Sort>,
    by: &'static SortBy<T>,
    /// Value of the parameter `sort`, to which cursors are bound.
    parameter: String,
}

impl CursorQuery {
    /// The requested page.
    pub(crate) fn page<T: 'static>(self, order: PageOrder) -> Result<ListPage<T>, Problem> {
        let Self { limit, cursor } = self;
        PageQuery::new(None, limit, cursor).page(&[], order)
    }
}

impl PageQuery {
    /// Parameters of a list without `order`.
    pub(crate) fn new(sort: Option<String>, limit: Option<u32>, cursor: Option<String>) -> Self {
        Self {
            sort,
            order: None,
            limit,
            cursor,
        }
    }

    /// The requested page of a list with these sort fields; `usual` is the default order. Reads one
    /// item beyond the limit, to find out whether there is a next page.
    pub(crate) fn page<T: 'static>(
        self,
        fields: SortFields<T>,
        usual: PageOrder,
    ) -> Result<ListPage<T>, Problem> {
        let Self {
            sort,
            order,
            limit,
            cursor,
        } = self;
        let limit = read_limit(limit)? + 1;
        let Some(parameter) = sort else {
            let order = order.map_or(usual, PageOrder::from);
            return by_id(cursor.as_deref(), limit, order);
        };
        if order.is_some() {
            return Err(Problem::invalid("sort", "cannot be combined with `order`"));
        }
        let (name, descending) = match parameter.strip_prefix('-') {
            Some(name) => (name, true),
            None => (parameter.as_str(), false),
        };
        let found = fields.iter().find(|(field, _)| *field == name);
        let Some((_, by)) = found else {
            return Err(Problem::invalid("sort", &unknown_field(fields)));
        };
        let order = if descending {
            PageOrder::Newest
        } else {
            PageOrder::Oldest
        };
        let column = match by {
            SortBy::Id => return by_id(cursor.as_deref(), limit, order),
            SortBy::Text(column, _) | SortBy::Number(column, _) => *column,
        };
        let place = cursor.map(|text| read_cursor(&text, &parameter, column));
        let (after, value) = place.transpose()?.unzip();
        Ok(ListPage {
            page: Page {
                after,
                limit,
                order,
            },
            sort: Some(Sort {
                column,
                descending,
                after: value,
            }),
            by,
            parameter,
        })
    }
}

impl<T: 'static> ListPage<T> {
    /// Filter by `name`, in the order of this page.
    pub(crate) fn filter(&self, name: Option<String>) -> ListFilter {
        let sort = self.sort.clone();
        ListFilter { name, sort }
    }

    /// Filter by an e-mail address, in the order of this page. Addresses are stored in lower case.
    pub(crate) fn filter_by_email(&self, email: Option<String>) -> ListFilter {
        self.filter(email.map(|text| text.to_lowercase()))
    }

    /// Response with `items`, which the store has read for this page.
    pub(crate) fn list(&self, mut items: Vec<T>, id: fn(&T) -> Uuid) -> Json<List<T>> {
        let wanted = usize::try_from(self.page.limit - 1).unwrap_or(usize::MAX);
        let more = wanted < items.len();
        items.truncate(wanted);
        let last = items.last().filter(|_| more);
        let next_cursor = last.map(|last| {
            let (sort, id) = (&self.parameter, id(last));
            match *self.by {
                SortBy::Id => id.to_string(),
                SortBy::Text(_, value) => write_cursor(sort, id, value(last)),
                SortBy::Number(_, value) => write_cursor(sort, id, &value(last).to_string()),
            }
        });
        Json(List { items, next_cursor })
    }
}

/// Checks the limit of a page: 1 to 200, or 50 if absent.
pub(crate) fn read_limit(limit: Option<u32>) -> Result<i64, Problem> {
    let limit = limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        return Err(Problem::bad_query("limit: is not 1 to 200"));
    }
    Ok(i64::from(limit))
}

/// Sort key of a time; items without one come last.
pub(crate) fn last_if_absent(time: Option<Timestamp>) -> i64 {
    time.map_or(i64::MAX, Timestamp::as_millisecond)
}

/// Sort key of a time; items without one come first.
pub(crate) fn first_if_absent(time: Option<Timestamp>) -> i64 {
    time.map_or(0, Timestamp::as_millisecond)
}

fn by_id<T: 'static>(
    cursor: Option<&str>,
    limit: i64,
    order: PageOrder,
) -> Result<ListPage<T>, Problem> {
    let after = cursor.map(Uuid::try_parse).transpose();
    let after = after.map_err(|_| Problem::bad_query("cursor: is not one of a list in this order"));
    Ok(ListPage {
        page: Page {
            after: after?,
            limit,
            order,
        },
        sort: None,
        by: &SortBy::Id,
        parameter: String::new(),
    })
}

fn unknown_field<T: 'static>(fields: SortFields<T>) -> String {
    let names: Vec<String> = fields
        .iter()
        .map(|(name, _)| format!("`{name}`, `-{name}`"))
        .collect();
    format!("is none of {}", names.join(", "))
}

/// Identifier and sort value of the previous page's last item, decoded from the cursor.
fn read_cursor(text: &str, sort: &str, column: SortColumn) -> Result<(Uuid, SortValue), Problem> {
    let read = || {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let text = String::from_utf8(bytes).ok()?;
        let (parameter, rest) = text.split_once(' ')?;
        let (id, value) = rest.split_once(' ')?;
        // PostgreSQL rejects text with NUL.
        let is_good = parameter == sort && !value.contains('\0');
        let id = Uuid::try_parse(id).ok().filter(|_| is_good)?;
        let value = if column.is_text() {
            SortValue::Text(value.to_owned())
        } else {
            SortValue::Number(value.parse().ok()?)
        };
        Some((id, value))
    };
    read().ok_or_else(|| Problem::bad_query("cursor: is not one of a list in this order"))
}

fn write_cursor(sort: &str, id: Uuid, value: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{sort} {id} {value}"))
}

impl From<OrderName> for PageOrder {
    fn from(order: OrderName) -> Self {
        match order {
            OrderName::Oldest => Self::Oldest,
            OrderName::Newest => Self::Newest,
        }
    }
}
