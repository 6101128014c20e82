//! Median and range of samples.

use serde::{Deserialize, Serialize};

/// Median, minimum and maximum.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    pub(crate) least: f64,
    pub(crate) median: f64,
    pub(crate) greatest: f64,
}

/// Computes median and range; `None` without values.
pub(crate) fn spread(values: impl Iterator<Item = f64>) -> Option<Spread> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let (least, greatest) = (*values.first()?, *values.last()?);
    let upper = *values.get(values.len() / 2)?;
    let lower = *values.get((values.len() - 1) / 2)?;
    Some(Spread {
        least,
        median: f64::midpoint(lower, upper),
        greatest,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        let odd = spread([3.0, 1.0, 2.0].into_iter()).unwrap();
        assert_eq!((odd.least, odd.median, odd.greatest), (1.0, 2.0, 3.0));
        let even = spread([4.0, 1.0, 2.0, 3.0].into_iter()).unwrap();
        assert!((even.median - 2.5).abs() < 1e-9);
        assert_eq!(spread(std::iter::empty()), None);
    }
}
