//! Pages of services, upstreams and certificates, which bundles are compiled from.

pub(crate) mod certificates;
pub(crate) mod managed_certificates;
pub(crate) mod services;
pub(crate) mod upstreams;

use crate::view::phrase::number;
use control_app::ServiceUse;

/// Names of the services that use an upstream or certificate, as a list.
fn users(found: &ServiceUse) -> Vec<String> {
    let (first, last) = found.names.clone();
    match found.count {
        ..=1 => vec![first],
        2 => vec![first, last],
        count => vec![first, last, format!("{} more", number(count - 2))],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_named_and_further_ones_counted() {
        let found = |count| {
            let names = ("a".to_owned(), "b".to_owned());
            users(&ServiceUse { count, names })
        };
        assert_eq!(found(1), ["a"]);
        assert_eq!(found(2), ["a", "b"]);
        assert_eq!(found(3), ["a", "b", "1 more"]);
    }
}
