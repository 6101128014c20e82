//! Tables of a run: comparison with peers, comparison of set-ups, and targets.

use crate::figure::Figure;
use crate::grid::Grid;
use crate::report::results::{CaseResult, EntryResult, InvalidRounds, Results};
use crate::report::targets::Verdict;
use crate::servers::server::OURS;
use crate::statistics::Spread;

/// Text of an empty cell.
const NOTHING: &str = "–";
/// Suffix of a figure without valid rounds.
const DOUBTFUL: &str = " (void)";

/// Table of `proxyd` and its peers, with a row for each figure of each case.
pub(crate) fn peers(results: &Results) -> Grid {
    let cases = || results.cases.iter().filter(|case| case.with_peers);
    let names = names(cases());
    let rivals: Vec<&str> = names.iter().copied().filter(|name| *name != OURS).collect();
    let mut heading = vec!["case".to_owned(), "figure".to_owned()];
    heading.extend(names.iter().map(|&name| name.to_owned()));
    heading.extend(rivals.iter().map(|name| format!("÷ {name}")));
    let mut grid = Grid::new(heading);
    for case in cases() {
        for figure in &case.figures {
            let mut row = vec![case.title.clone(), figure.title().to_owned()];
            row.extend(names.iter().map(|name| value(case.entry(name), *figure)));
            let ratio = |name: &&str| relation(case.entry(OURS), case.entry(name), *figure);
            row.extend(rivals.iter().map(ratio));
            grid.push(row);
        }
    }
    grid
}

/// Table of set-ups of `proxyd`, with a row for each figure of each set-up.
pub(crate) fn ours(results: &Results) -> Grid {
    let heading = ["case", "set-up", "figure", "proxyd", "÷ the first"];
    let mut grid = Grid::new(heading.map(str::to_owned).to_vec());
    for case in results.cases.iter().filter(|case| !case.with_peers) {
        let first = case.entries.first();
        for (place, entry) in case.entries.iter().enumerate() {
            for figure in &case.figures {
                grid.push(vec![
                    case.title.clone(),
                    entry.name.clone(),
                    figure.title().to_owned(),
                    value(Some(entry), *figure),
                    if place == 0 {
                        NOTHING.to_owned()
                    } else {
                        relation(Some(entry), first, *figure)
                    },
                ]);
            }
        }
    }
    grid
}

/// Table of targets and their results.
pub(crate) fn targets(verdicts: &[Verdict]) -> Grid {
    let heading = ["case", "figure", "of", "measured", "gate", "goal", ""];
    let mut grid = Grid::new(heading.map(str::to_owned).to_vec());
    for verdict in verdicts {
        let is_ratio = verdict.subject.contains('÷');
        let written = |value: f64| {
            if is_ratio {
                format!("{value:.2}")
            } else {
                verdict.figure.written(value)
            }
        };
        let measured = verdict.measured.map(|spread| written(spread.median));
        grid.push(vec![
            verdict.case.clone(),
            verdict.figure.title().to_owned(),
            verdict.subject.clone(),
            measured.unwrap_or_else(|| NOTHING.to_owned()),
            written(verdict.gate),
            verdict.goal.map_or_else(|| NOTHING.to_owned(), written),
            verdict.standing.word().to_owned(),
        ]);
    }
    grid
}

/// Lists servers that could not be measured, and invalid samples, with one line per server and
/// reason.
pub(crate) fn remarks(results: &Results) -> Vec<String> {
    let mut remarks: Vec<(String, Vec<&str>)> = Vec::new();
    let entries = results
        .cases
        .iter()
        .flat_map(|case| case.entries.iter().map(move |entry| (case, entry)));
    for (case, entry) in entries {
        for remark in remarks_on(entry) {
            match remarks.iter_mut().find(|(same, _)| *same == remark) {
                Some((_, cases)) => cases.push(&case.name),
                None => remarks.push((remark, vec![&case.name])),
            }
        }
    }
    let row = |(remark, cases): (String, Vec<&str>)| format!("{} {remark}", cases.join(", "));
    remarks.into_iter().map(row).collect()
}

fn remarks_on(entry: &EntryResult) -> impl Iterator<Item = String> {
    let name = &entry.name;
    let unsupported = entry.unsupported.as_ref();
    let unsupported = unsupported.map(|why| format!("({name}): unsupported: {why}"));
    let in_vain = entry.void.as_ref().map(|InvalidRounds { rounds, reason }| {
        format!(
            "({name}): {rounds} of {} rounds void: {reason}",
            entry.rounds
        )
    });
    unsupported.into_iter().chain(in_vain)
}

/// Returns the names of entries, in order of first occurrence.
fn names<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Vec<&'a str> {
    let mut names = Vec::new();
    for entry in cases.flat_map(|case| &case.entries) {
        if !names.contains(&entry.name.as_str()) {
            names.push(entry.name.as_str());
        }
    }
    names
}

fn value(entry: Option<&EntryResult>, figure: Figure) -> String {
    let Some(entry) = entry else {
        return NOTHING.to_owned();
    };
    if entry.unsupported.is_some() {
        return "unsupported".to_owned();
    }
    let Some(spread) = entry.spread(figure) else {
        return NOTHING.to_owned();
    };
    let doubt = if entry.is_doubtful() { DOUBTFUL } else { "" };
    format!("{}{doubt}", figure.written(spread.median))
}

/// Formats the median of a ratio, with its range.
fn relation(ours: Option<&EntryResult>, theirs: Option<&EntryResult>, figure: Figure) -> String {
    let ratio = ours
        .zip(theirs)
        .and_then(|(ours, theirs)| ours.ratio(theirs, figure));
    match ratio {
        None => NOTHING.to_owned(),
        Some(Spread {
            least,
            median,
            greatest,
        }) if least < greatest => format!("{median:.2} ({least:.2}–{greatest:.2})"),
        Some(Spread { median, .. }) => format!("{median:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::report_fixture::results;
    use crate::report::tests::entry;
    use crate::report::{CaseReport, Entry};

    const CPU: Figure = Figure::CpuMicros;

    fn case(with_peers: bool, entries: Vec<Entry>) -> CaseReport {
        CaseReport {
            name: "get-64".to_owned(),
            title: "GET".to_owned(),
            with_peers,
            figures: vec![CPU],
            entries,
        }
    }

    #[test]
    fn peers_are_columns_followed_by_their_ratios() {
        let entries = vec![
            entry(OURS, CPU, &[Some(9.0), Some(9.5), Some(10.0)]),
            entry("nginx", CPU, &[Some(10.0), Some(10.0), Some(10.0)]),
            Entry::unsupported("haproxy", "it is not installed".to_owned()),
        ];
        let shown = results(vec![case(true, entries)]);
        assert_eq!(
            peers(&shown).plain(),
            "case  figure           proxyd   nginx     haproxy      ÷ nginx           ÷ haproxy\n\
             GET   CPU per request  9.50 µs  10.00 µs  unsupported  0.95 (0.90–1.00)  –"
        );
        assert!(ours(&shown).is_empty());
        assert_eq!(
            remarks(&shown),
            ["get-64 (haproxy): unsupported: it is not installed"]
        );
    }

    #[test]
    fn setups_are_rows_compared_with_the_first() {
        let entries = vec![
            entry("10 routes", CPU, &[Some(10.0)]),
            entry("1 000 routes", CPU, &[Some(11.0)]),
            entry("10 000 routes", CPU, &[None]),
        ];
        let shown = results(vec![case(false, entries)]);
        let plain = ours(&shown).plain();
        let lines: Vec<&str> = plain.lines().collect();
        assert!(lines[1].ends_with("10.00 µs         –"));
        assert!(lines[2].ends_with("11.00 µs         1.10"));
        assert!(lines[3].ends_with("99.00 µs (void)  –"));
        assert_eq!(
            remarks(&shown),
            ["get-64 (10 000 routes): 1 of 1 rounds void: void"]
        );
    }
}
