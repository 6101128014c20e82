//! The screen: its state, and the lines to draw.

use crate::interval::Interval;
use crate::reading::Reading;
use crate::table::{Cell, Line, Tone, text_of};
use crate::text::{escaped, fitted};
use crate::view::{Sorting, View, summary};

const HELP: &str = "q quit  tab view  s sort  arrows scroll";

/// A key with a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Key {
    Quit,
    NextView,
    PreviousView,
    /// The view of this number, from 0.
    View(usize),
    Sort,
    Up,
    Down,
    PageUp,
    PageDown,
}

/// State of the screen.
#[derive(Debug)]
pub(crate) struct Screen {
    view: View,
    sorting: Sorting,
    /// Number of rows above the first one that is shown.
    scrolled: usize,
    interval: Option<Interval>,
    /// The fault of the last reading, shown with the figures before it.
    fault: Option<String>,
}

/// Columns and lines of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) lines: usize,
}

impl Screen {
    pub(crate) const fn new(interval: Option<Interval>) -> Self {
        Self {
            view: View::Routes,
            sorting: Sorting::Load,
            scrolled: 0,
            interval,
            fault: None,
        }
    }

    /// Takes a reading, or the fault in its place.
    pub(crate) fn update(&mut self, reading: Result<Reading, String>) {
        match reading {
            Ok(reading) => {
                self.fault = None;
                self.interval = Some(match self.interval.take() {
                    None => Interval::from_start(reading),
                    Some(interval) => interval.next(reading),
                });
            }
            Err(fault) => self.fault = Some(fault),
        }
    }

    /// Changes the view by a key; false if it quits.
    pub(crate) fn press(&mut self, key: Key, size: Size) -> bool {
        let page = size.lines.saturating_sub(HEAD_LINES + 1).max(1);
        match key {
            Key::Quit => return false,
            Key::NextView => self.show(self.view.moved(1)),
            Key::PreviousView => self.show(self.view.moved(View::ALL.len() - 1)),
            Key::View(number) => self.show(View::ALL.get(number).copied().unwrap_or(self.view)),
            Key::Sort => {
                self.sorting = self.sorting.next();
                self.scrolled = 0;
            }
            Key::Up => self.scrolled = self.scrolled.saturating_sub(1),
            Key::Down => self.scrolled += 1,
            Key::PageUp => self.scrolled = self.scrolled.saturating_sub(page),
            Key::PageDown => self.scrolled += page,
        }
        true
    }

    const fn show(&mut self, view: View) {
        self.view = view;
        self.scrolled = 0;
    }

    /// The visible lines, cut to the width of the terminal. A position beyond the last page shows the last page.
    pub(crate) fn lines(&mut self, size: Size) -> Vec<Line> {
        let Size { columns, lines } = size;
        let mut shown = self.head(columns);
        if let Some(interval) = &self.interval {
            let table = self.view.table(interval, self.sorting);
            let (titles, rows) = table.lines(Some(columns));
            shown.push(titles);
            let room = lines.saturating_sub(shown.len() + 1);
            self.scrolled = self.scrolled.min(rows.len().saturating_sub(room));
            shown.extend(rows.into_iter().skip(self.scrolled).take(room));
        }
        shown.truncate(lines.saturating_sub(1));
        shown.push(vec![text_cell(HELP, Tone::Plain, columns)]);
        shown.truncate(lines);
        shown
    }

    /// The process, and the views to choose from.
    fn head(&self, columns: usize) -> Vec<Line> {
        let mut head = Vec::with_capacity(HEAD_LINES);
        match &self.interval {
            Some(interval) => {
                let summary = summary(interval);
                head.extend(summary.map(|line| vec![text_cell(&line, Tone::Plain, columns)]));
            }
            None => head.push(vec![text_cell("connecting", Tone::Plain, columns)]),
        }
        let views = View::ALL.iter().map(|view| {
            let title = view.title();
            if *view == self.view {
                format!("[{title}]")
            } else {
                format!(" {title} ")
            }
        });
        let views: String = views.collect();
        let views = format!("{views}  sorted by {}", self.sorting.title());
        head.push(match &self.fault {
            Some(fault) => vec![text_cell(&escaped(fault), Tone::Bad, columns)],
            None => vec![text_cell(&views, Tone::Title, columns)],
        });
        head
    }
}

/// Lines above the rows.
const HEAD_LINES: usize = 4;

fn text_cell(text: &str, tone: Tone, columns: usize) -> Cell {
    Cell::new(fitted(text, columns).into_owned(), tone)
}

/// All views of an interval, one after the other, as plain text.
pub(crate) fn plain_page(interval: &Interval) -> String {
    let mut page = summary(interval).join("\n");
    page.push('\n');
    for view in View::ALL {
        let (titles, rows) = view.table(interval, Sorting::Load).lines(None);
        page.push('\n');
        for line in std::iter::once(&titles).chain(&rows) {
            page.push_str(&text_of(line));
            page.push('\n');
        }
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reading::sample_reading;
    use crate::text::width;

    const SIZE: Size = Size {
        columns: 130,
        lines: 12,
    };

    fn screen() -> Screen {
        let first = Interval::from_start(sample_reading(50, 100, 0));
        Screen::new(Some(first.next(sample_reading(60, 400, 20))))
    }

    fn shown(screen: &mut Screen, size: Size) -> Vec<String> {
        screen.lines(size).iter().map(text_of).collect()
    }

    #[test]
    fn each_view_shows_its_rows() {
        let mut screen = screen();
        let routes = shown(&mut screen, SIZE).join("\n");
        for part in [
            "32 req/s",
            "5xx 2",
            "3 in flight",
            "[routes]",
            "shop",
            "29.3K",
            "\\u{1b}[2Jb",
        ] {
            assert!(routes.contains(part), "{part}\n{routes}");
        }
        assert!(screen.press(Key::NextView, SIZE));
        let upstreams = shown(&mut screen, SIZE).join("\n");
        for part in [
            "[upstreams]",
            "1/2",
            "open",
            "active_check",
            "connect_refused 2/s",
            "refused\\u{1b}",
        ] {
            assert!(upstreams.contains(part), "{part}\n{upstreams}");
        }
        assert!(screen.press(Key::View(2), SIZE));
        let limits = shown(&mut screen, SIZE).join("\n");
        for part in [
            "max-in-flight-requests",
            "75%",
            "max-requests-per-second-global",
        ] {
            assert!(limits.contains(part), "{part}\n{limits}");
        }
        assert!(screen.press(Key::NextView, SIZE));
        let time = shown(&mut screen, SIZE).join("\n");
        for part in [
            "all requests",
            "upstream app",
            "agent waf, request-headers",
            "100%",
        ] {
            assert!(time.contains(part), "{part}\n{time}");
        }
        assert!(screen.press(Key::NextView, SIZE));
        assert!(shown(&mut screen, SIZE).join("\n").contains("[routes]"));
        assert!(screen.press(Key::PreviousView, SIZE));
        assert!(shown(&mut screen, SIZE).join("\n").contains("[time]"));
        assert!(!screen.press(Key::Quit, SIZE));
    }

    #[test]
    fn rows_are_sorted_and_scrolled() {
        let mut screen = screen();
        let rows = |screen: &mut Screen| shown(screen, SIZE).split_off(HEAD_LINES);
        assert!(rows(&mut screen)[0].starts_with("shop"));
        for _ in 0..3 {
            assert!(screen.press(Key::Sort, SIZE));
        }
        assert!(rows(&mut screen)[0].starts_with("a\\u{1b}"), "by name");
        let small = Size {
            columns: 60,
            lines: HEAD_LINES + 2,
        };
        for _ in 0..9 {
            assert!(screen.press(Key::Down, small));
        }
        let lines = shown(&mut screen, small);
        assert!(lines[HEAD_LINES].starts_with("shop"), "{lines:?}");
        assert!(screen.press(Key::PageUp, small));
        let lines = shown(&mut screen, small);
        assert!(lines[HEAD_LINES].starts_with("a\\u{1b}"), "{lines:?}");
    }

    #[test]
    fn no_line_is_longer_than_the_terminal() {
        let mut screen = screen();
        screen.update(Err("no answer from 127.0.0.1:9090\u{1b}[2J".to_owned()));
        for columns in [0, 1, 9, 40, 80, 200] {
            for lines in [0, 1, 3, 5, 30] {
                for view in 0..View::ALL.len() {
                    assert!(screen.press(Key::View(view), Size { columns, lines }));
                    let shown = shown(&mut screen, Size { columns, lines });
                    assert!(shown.len() <= lines, "{columns} {lines}");
                    assert!(shown.iter().all(|line| width(line) <= columns), "{shown:?}");
                    assert!(!shown.concat().contains('\u{1b}'), "{shown:?}");
                }
            }
        }
    }

    #[test]
    fn a_fault_is_shown_with_the_figures_before_it() {
        let mut screen = Screen::new(None);
        assert!(shown(&mut screen, SIZE)[0].contains("connecting"));
        screen.update(Ok(sample_reading(50, 100, 0)));
        screen.update(Err("no answer".to_owned()));
        let lines = shown(&mut screen, SIZE).join("\n");
        assert!(
            lines.contains("no answer") && lines.contains("shop"),
            "{lines}"
        );
        screen.update(Ok(sample_reading(51, 110, 0)));
        let lines = shown(&mut screen, SIZE).join("\n");
        assert!(
            !lines.contains("no answer") && lines.contains("10 req/s"),
            "{lines}"
        );
    }

    #[test]
    fn a_plain_page_has_all_views() {
        let page = plain_page(&Interval::from_start(sample_reading(50, 100, 5)));
        for part in [
            "since the start",
            "route ",
            "upstream ",
            "setting ",
            "part of the time",
            "shop",
        ] {
            assert!(page.contains(part), "{part}\n{page}");
        }
        assert!(!page.contains('\u{1b}'), "{page}");
    }
}
