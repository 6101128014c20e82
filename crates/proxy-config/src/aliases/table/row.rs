//! Constructors of the table's rows.

use crate::aliases::alias::{Alias, Anchor, Change, Convert};

/// The setting is at `path` here.
pub(super) const fn moved(
    anchor: Anchor,
    from: &'static str,
    paths: &'static [&'static str],
    convert: Convert,
    remark: &'static str,
) -> Alias {
    Alias {
        anchor,
        from,
        change: Change::Moved(paths, convert),
        remark,
    }
}

/// A setting that states our fixed behaviour.
pub(super) const fn implied(
    anchor: Anchor,
    from: &'static str,
    convert: Convert,
    remark: &'static str,
) -> Alias {
    moved(anchor, from, &[], convert, remark)
}

pub(super) const fn missing(anchor: Anchor, from: &'static str, remedy: &'static str) -> Alias {
    Alias {
        anchor,
        from,
        change: Change::Missing,
        remark: remedy,
    }
}

pub(super) const fn group(anchor: Anchor, from: &'static str, remark: &'static str) -> Alias {
    Alias {
        anchor,
        from,
        change: Change::Group,
        remark,
    }
}

pub(super) const fn completed(
    anchor: Anchor,
    from: &'static str,
    setting: &'static str,
    value: &'static str,
) -> Alias {
    Alias {
        anchor,
        from,
        change: Change::Completed(setting, value),
        remark: "",
    }
}

pub(super) const fn spread(
    anchor: Anchor,
    from: &'static str,
    settings: &'static str,
    remark: &'static str,
) -> Alias {
    Alias {
        anchor,
        from,
        change: Change::Spread(settings),
        remark,
    }
}
