//! Versions of programs, compared by their numbers.

use std::str::FromStr;

/// `major.minor.patch`; a suffix after `-` or `+` is ignored by comparisons.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version([u32; 3]);

impl FromStr for Version {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let numbers = text.split(['-', '+']).next().unwrap_or_default();
        let mut parts = numbers.split('.').map(str::parse::<u32>);
        let mut next = || parts.next().and_then(Result::ok).ok_or(());
        let version = Self([next()?, next()?, next()?]);
        parts.next().is_none().then_some(version).ok_or(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_as_numbers() {
        let version = |text: &str| text.parse::<Version>();
        assert!(version("0.9.0").unwrap() < version("0.10.0-rc.1").unwrap());
        for bad in ["", "1", "1.2", "1.2.3.4", "1.2.x", "-1.2.3"] {
            assert_eq!(version(bad), Err(()), "{bad}");
        }
    }
}
