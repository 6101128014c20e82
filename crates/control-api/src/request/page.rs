//! Lists, a page at a time.

use crate::response::problem::Problem;
use axum::Json;
use control_app::{Page, PageOrder, Versioned};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

const DEFAULT_LIMIT: u32 = 50;
const MAX_LIMIT: u32 = 200;

/// Which page.
#[derive(Clone, Copy, Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct PageQuery {
    /// How many items at most.
    #[param(minimum = 1, maximum = 200, default = 50)]
    pub(crate) limit: Option<u32>,
    /// `next_cursor` of the page before.
    pub(crate) cursor: Option<Uuid>,
}

/// Which end a list begins with, by the creation of its items.
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
    /// Where the next page begins; absent on the last one.
    next_cursor: Option<Uuid>,
}

impl PageQuery {
    /// One more than asked for: whether it comes says whether there is a next page.
    pub(crate) fn page(self) -> Result<Page, Problem> {
        self.page_in(PageOrder::Oldest)
    }

    /// Like [`PageQuery::page`], of a list in the order that is asked for, or else the newest first.
    pub(crate) fn newest_page(self, order: Option<OrderName>) -> Result<Page, Problem> {
        self.page_in(order.map_or(PageOrder::Newest, PageOrder::from))
    }

    /// Like [`PageQuery::page`], of a list in the order that is asked for, or else the oldest first.
    pub(crate) fn oldest_page(self, order: Option<OrderName>) -> Result<Page, Problem> {
        self.page_in(order.map_or(PageOrder::Oldest, PageOrder::from))
    }

    fn page_in(self, order: PageOrder) -> Result<Page, Problem> {
        let limit = Self::wanted(self.limit)?;
        Ok(Page {
            after: self.cursor,
            limit: limit + 1,
            order,
        })
    }

    /// How many items a page has at most.
    pub(crate) fn wanted(limit: Option<u32>) -> Result<i64, Problem> {
        let limit = limit.unwrap_or(DEFAULT_LIMIT);
        if !(1..=MAX_LIMIT).contains(&limit) {
            return Err(Problem::bad_query("limit: is not 1 to 200"));
        }
        Ok(i64::from(limit))
    }
}

impl From<OrderName> for PageOrder {
    fn from(order: OrderName) -> Self {
        match order {
            OrderName::Oldest => Self::Oldest,
            OrderName::Newest => Self::Newest,
        }
    }
}

impl<T> List<T> {
    /// The page of values that the store gave, as they are shown.
    pub(crate) fn from_found<V>(
        page: Page,
        found: &[Versioned<V>],
        id: fn(&T) -> Uuid,
    ) -> Json<Self>
    where
        T: for<'v> From<&'v V>,
    {
        let views = found.iter().map(|found| T::from(&found.value));
        Json(Self::new(page, views.collect(), id))
    }

    /// `items` as the store gave them for `page`.
    pub(crate) fn new(page: Page, mut items: Vec<T>, id: fn(&T) -> Uuid) -> Self {
        let wanted = usize::try_from(page.limit - 1).unwrap_or(usize::MAX);
        let more = wanted < items.len();
        items.truncate(wanted);
        let next_cursor = items.last().filter(|_| more).map(id);
        Self { items, next_cursor }
    }
}
