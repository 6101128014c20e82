//! Page of a project's traffic by route, node and label, compared with a week before.

use crate::frame::{Frame, NavEntry, show as shown};
use crate::node::traffic::Served;
use crate::project::metric_query::{MetricQuery, queries};
use crate::project::traffic_figures::{Figure, figures, heading, words};
use crate::request::failure::Failure;
use crate::request::path::Path;
use crate::request::visit::Caller;
use crate::ui::Ui;
use crate::view::phrase::{date_time, minute, number};
use askama::Template;
use axum::extract::State;
use axum::response::Response;
use control_app::{NamedTraffic, ProjectTraffic, TrafficFigures};
use control_domain::{TrafficPeriod, TrafficStep, TrafficWindow};
use control_wire::ProjectId;
use form_urlencoded::Serializer;
use jiff::Timestamp;
use std::sync::Arc;

/// Maximum number of rows per table; the API returns more.
const MAX_ROWS: usize = 30;

#[derive(Template)]
#[template(path = "traffic.html")]
struct TrafficPage {
    frame: Frame,
    project: ProjectId,
    heading: String,
    rest: String,
    periods: Vec<PeriodLink>,
    figures: Vec<Figure>,
    steps: Vec<StepRow>,
    tables: Vec<Table>,
    /// Further labels to group by, with their links.
    labels: Vec<(String, String)>,
    queries: Vec<MetricQuery>,
    /// Whether the queries are links to a Prometheus server.
    has_prometheus: bool,
    is_empty: bool,
}

/// Link to a period.
struct PeriodLink {
    href: String,
    label: &'static str,
    is_current: bool,
}

/// Figures of one step, which is a point of the charts.
struct StepRow {
    at: String,
    served: Served,
}

/// Figures by route, node or label value.
struct Table {
    id: &'static str,
    heading: String,
    /// Heading of the first column.
    noun: String,
    /// Number of rows that are not shown, as text; empty if all are.
    more: String,
    has_labels: bool,
    rows: Vec<Row>,
}

/// A route, node or label value with its figures.
struct Row {
    name: String,
    href: Option<String>,
    served: Served,
    before: Served,
}

/// Shows the traffic; `?period=` sets the period, `?by=` the label.
pub(crate) async fn show(
    State(ui): State<Arc<Ui>>,
    caller: Caller,
    Path(project): Path<ProjectId>,
) -> Result<Response, Failure> {
    let frame = Frame::project(&ui, &caller, project, NavEntry::Traffic.titled("Traffic")).await?;
    let (app, call, query) = (&ui.app, &caller.call, &caller.visit.query);
    let period = TrafficPeriod::from_name(query.get("period"));
    let period = period.unwrap_or(TrafficPeriod::Hour);
    let names = app.label_names(call, project).await?;
    let asked = query.given("by").map(str::to_owned);
    let label = asked.filter(|name| names.contains(name));
    let label = label.or_else(|| names.first().cloned());
    let found = app.project_traffic(call, project, period, label.as_deref());
    let traffic = found.await?;
    let prometheus = app.prometheus_url(call, project).await?;
    let now = caller.visit.now;
    let periods = TrafficPeriod::ALL.map(|other| PeriodLink {
        href: link(project, other, label.as_deref()),
        label: words(other).0,
        is_current: other == period,
    });
    let labels = names.iter().filter(|name| Some(*name) != label.as_ref());
    let labels = labels.map(|name| (name.clone(), link(project, period, Some(name))));
    let step_rows = traffic.steps.iter().map(|point| StepRow {
        at: minute(point.at, now),
        served: point.counted.as_ref().map(Served::from).unwrap_or_default(),
    });
    Ok(shown(&TrafficPage {
        frame,
        project,
        heading: heading(&traffic.total, period, now),
        rest: subheading(&traffic.total, traffic.window, now),
        periods: periods.into(),
        figures: figures(&traffic.total, &traffic.steps, period),
        steps: step_rows.collect(),
        labels: labels.collect(),
        queries: queries(period, prometheus.as_deref()),
        has_prometheus: prometheus.is_some(),
        is_empty: traffic.total.counted.requests == 0,
        tables: tables(project, traffic, label),
    }))
}

fn link(project: ProjectId, period: TrafficPeriod, label: Option<&str>) -> String {
    let mut query = Serializer::new(String::new());
    query.append_pair("period", period.name());
    if let Some(label) = label {
        query.append_pair("by", label);
    }
    format!("/projects/{project}/traffic?{}", query.finish())
}

fn subheading(total: &TrafficFigures, window: TrafficWindow, now: Timestamp) -> String {
    let TrafficWindow { step, from, to } = window;
    let length = match step {
        TrafficStep::FiveMinutes => "five minutes",
        TrafficStep::Hour => "an hour",
        TrafficStep::SixHours => "six hours",
    };
    let before = match total.week_before {
        Some(_) => "",
        None => " The counts do not reach back to a week before.",
    };
    format!(
        "From {} to {}, in whole steps of {length}. Nodes report their counters by heartbeat.{before}",
        date_time(from, now),
        date_time(to, now)
    )
}

fn tables(project: ProjectId, traffic: ProjectTraffic, label: Option<String>) -> Vec<Table> {
    let ProjectTraffic {
        routes,
        nodes,
        groups,
        ..
    } = traffic;
    let table = |id, heading: String, noun: &str, (shown, all): (Vec<Row>, usize)| Table {
        id,
        heading,
        noun: noun.to_owned(),
        more: match all - shown.len() {
            0 => String::new(),
            more => number(i64::try_from(more).unwrap_or(i64::MAX)),
        },
        has_labels: false,
        rows: shown,
    };
    let (route_count, node_count) = (routes.len(), nodes.len());
    let routes = routes.into_iter().take(MAX_ROWS);
    let routes = routes.map(|NamedTraffic { name, figures }| match name.as_str() {
        "" => Row::new("all other routes".to_owned(), None, &figures),
        _ => Row::new(name, None, &figures),
    });
    let nodes = nodes.into_iter().take(MAX_ROWS).map(|node| {
        let href = format!("/projects/{project}/nodes/{}", node.id);
        Row::new(node.name, Some(href), &node.figures)
    });
    let mut tables = vec![table(
        "routes",
        "By route".to_owned(),
        "Route",
        (routes.collect(), route_count),
    )];
    if let Some(label) = label {
        let group_count = groups.len();
        let groups = groups.into_iter().take(MAX_ROWS);
        let groups = groups.map(|NamedTraffic { name, figures }| {
            let mut query = Serializer::new(String::new());
            query.append_pair("q", &format!("{label}:{name}"));
            let href = format!("/projects/{project}/nodes?{}", query.finish());
            Row::new(name, Some(href), &figures)
        });
        let rows = (groups.collect(), group_count);
        tables.push(Table {
            has_labels: true,
            ..table("groups", format!("By {label}"), &label, rows)
        });
    }
    let rows = (nodes.collect(), node_count);
    tables.push(table("by-node", "By node".to_owned(), "Node", rows));
    tables
}

impl Row {
    fn new(name: String, href: Option<String>, figures: &TrafficFigures) -> Self {
        let before = figures.week_before.as_ref().map(Served::from);
        Self {
            name,
            href,
            served: Served::from(&figures.counted),
            before: before.unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_figures_are_empty() {
        let row = Row::new("a".to_owned(), None, &TrafficFigures::default());
        assert_eq!(row.before, Served::default());
        assert_eq!(row.served.p99, "");
    }

    #[test]
    fn a_table_counts_its_omitted_rows() {
        let routes = (0..40).map(|number| NamedTraffic {
            name: format!("r{number}"),
            figures: TrafficFigures::default(),
        });
        let traffic = ProjectTraffic {
            window: TrafficPeriod::Hour.window(Timestamp::UNIX_EPOCH),
            total: TrafficFigures::default(),
            steps: Vec::new(),
            routes: routes.collect(),
            nodes: Vec::new(),
            groups: Vec::new(),
        };
        let tables = tables(ProjectId(uuid::Uuid::nil()), traffic, None);
        assert_eq!((tables.len(), tables[0].rows.len()), (2, 30));
        assert_eq!(tables[0].more, "10");
    }
}
