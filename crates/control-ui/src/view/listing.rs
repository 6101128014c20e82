//! Pages of a list, and links to the next page.

use crate::view::component::{NextPage, more};
use control_app::{Page, PageOrder, Sort, SortColumn, SortValue};
use form_urlencoded::byte_serialize;
use uuid::Uuid;

/// The page after the item `after`, with one more item than the `shown` ones.
pub(crate) fn page(after: &str, order: PageOrder, shown: usize) -> Page {
    Page {
        after: after.parse().ok(),
        limit: i64::try_from(shown).unwrap_or(i64::MAX).saturating_add(1),
        order,
    }
}

/// Sort order by a column. The page begins after the item `after` with the value `past`.
pub(crate) fn sort(column: SortColumn, descending: bool, after: &str, past: &str) -> Sort {
    let after = if after.is_empty() {
        None
    } else if column.is_text() {
        Some(SortValue::Text(past.replace('\0', "")))
    } else {
        past.parse().ok().map(SortValue::Number)
    };
    Sort {
        column,
        descending,
        after,
    }
}

/// Truncates `items` to the `shown` ones; returns the identifier of the last one if there are more.
pub(crate) fn cut<T>(items: &mut Vec<T>, shown: usize, id: impl Fn(&T) -> Uuid) -> Option<Uuid> {
    let has_more = shown < items.len();
    items.truncate(shown);
    items.last().filter(|_| has_more).map(id)
}

/// Link to the page after the item `last`.
pub(crate) fn next(last: Option<Uuid>, label: &'static str) -> NextPage {
    more(last.map(|last| format!("?after={last}")), label)
}

/// Link to the page after the item `last` of a sorted list, with its sort value.
pub(crate) fn next_sorted(last: Option<(Uuid, String)>, label: &'static str) -> NextPage {
    let address = last.map(|(last, value)| {
        let value: String = byte_serialize(value.as_bytes()).collect();
        format!("?after={last}&past={value}")
    });
    more(address, label)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_ends_with_its_page_has_no_next_one() {
        let list = |length: u128| (1..=length).map(Uuid::from_u128).collect::<Vec<_>>();
        let mut whole = list(3);
        assert_eq!(cut(&mut whole, 3, |id| *id), None);
        assert_eq!(whole.len(), 3);
        let mut longer = list(4);
        let last = cut(&mut longer, 3, |id| *id);
        assert_eq!((last, longer.len()), (Some(Uuid::from_u128(3)), 3));
        let link = next(last, "Show more").to_string();
        assert!(link.contains("href=\"?after=00000000-0000-0000-0000-000000000003\""));
        assert_eq!(page("", PageOrder::Newest, 3).limit, 4);
    }

    #[test]
    fn a_sorted_list_continues_after_the_value_of_its_last_item() {
        let last = Some((Uuid::from_u128(3), "a & b".to_owned()));
        let link = next_sorted(last, "Show more").to_string();
        let expected = "href=\"?after=00000000-0000-0000-0000-000000000003&#38;past=a+%26+b\"";
        assert!(link.contains(expected), "{link}");
        let read = |column, after, past| sort(column, false, after, past).after;
        let text = SortValue::Text("a & b".to_owned());
        assert_eq!(read(SortColumn::Name, "3", "a & b"), Some(text));
        let number = read(SortColumn::Priority, "3", "-7");
        assert_eq!(number, Some(SortValue::Number(-7)));
        assert_eq!(read(SortColumn::Priority, "3", "x"), None);
        assert_eq!(read(SortColumn::Name, "", "a"), None);
    }
}
