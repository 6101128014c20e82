//! Traffic over time: from heartbeats to the page, with the same figures as the interface.

use crate::fleet::{Fleet, node};
use crate::world::{Shown, World, between, worlds};
use axum::http::StatusCode;
use control_app::NodeSelection;
use control_domain::{BatchSize, MetricCondition, NewRollout, OnFailure, Strategy, TrafficPeriod};
use control_http::SessionCookie;
use control_testkit::Database;
use jiff::SignedDuration;
use std::collections::BTreeMap;

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_heartbeats_are_shown_with_the_week_before() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let path = "/projects/{project}/traffic";
        let shown = world.get(path, &world.admin).await;
        assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
        let heading = shown.heading();
        assert!(heading.contains(" requests in an hour, "), "{heading}");
        assert!(
            heading.contains(" times as many as a week before; 0."),
            "{heading}"
        );
        let call = world.call().await;
        let hour = TrafficPeriod::Hour;
        let found = world
            .app
            .project_traffic(&call, world.project, hour, Some("region"));
        let traffic = found.await.unwrap();
        let requests = traffic.total.counted.requests;
        assert_eq!(requests % 400, 0, "each heartbeat has 400");
        assert_eq!(traffic.total.week_before.unwrap().requests, 1_000);
        let of_steps = traffic.steps.iter().filter_map(|step| step.counted);
        assert_eq!(of_steps.map(|step| step.requests).sum::<u64>(), requests);
        let of_nodes = traffic
            .nodes
            .iter()
            .map(|node| node.figures.counted.requests);
        assert_eq!(of_nodes.sum::<u64>(), requests);
        let of_groups = traffic
            .groups
            .iter()
            .map(|group| group.figures.counted.requests);
        assert_eq!(of_groups.sum::<u64>(), requests);
        assert_eq!(traffic.groups.len(), 3, "regions");
        check_rows(&shown, &fleet);
        // The list of nodes shows the requests of the same hour.
        let list = world.get("/projects/{project}/nodes", &world.admin).await;
        let link = format!("/nodes/{}\"", fleet.nodes[0]);
        let row = between(&list.text, &link, "</tr>");
        let in_list = between(row, "data-label=\"Requests\">", "</td>");
        let nodes = between(&shown.text, "id=\"by-node\"", "</section>");
        let is_same = nodes.contains(&format!(">{in_list}</td>"));
        assert!(is_same && !in_list.is_empty(), "{in_list} in {nodes}");
        for period in ["day", "week"] {
            let path = format!("{path}?period={period}&by=region");
            let shown = world.get(&path, &world.admin).await;
            assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
        }
    }
}

/// Checks tables, charts, and the text of their figures.
fn check_rows(shown: &Shown, fleet: &Fleet) {
    let routes = between(&shown.text, "id=\"routes\"", "</section>");
    assert!(routes.contains(">shop-api</th>"), "{routes}");
    let groups = between(&shown.text, "id=\"groups\"", "</section>");
    assert!(groups.contains("By region"), "{groups}");
    assert!(groups.contains("/nodes?q=region%3Afra"), "{groups}");
    let nodes = between(&shown.text, "id=\"by-node\"", "</section>");
    let link = format!("/nodes/{}\"", fleet.nodes[0]);
    assert!(nodes.contains(&link), "{nodes}");
    let charts = shown.text.matches("<svg class=\"chart\"").count();
    assert_eq!(charts, 3);
    assert!(shown.text.contains("aria-label=\"Requests over an hour: "));
    let text = between(&shown.text, "The figures of the charts", "</details>");
    assert_eq!(text.matches("<tr><th scope=\"row\">").count(), 12);
    assert!(text.contains("no report"), "{text}");
    assert!(shown.text.contains("increase(proxy_requests_total[1h])"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_route_is_found_by_a_part_of_its_name() {
    for world in worlds().await {
        let _fleet = Fleet::new(&world).await;
        let path = "/projects/{project}/search";
        let empty = world.get(path, &world.admin).await;
        let main = between(&empty.text, "<main", "</main>");
        assert!(main.contains("<input id=\"name\" name=\"q\""), "{main}");
        let found = world.get(&format!("{path}?q=op-ap"), &world.admin).await;
        let results = between(&found.text, "aria-label=\"Results\"", "</section>");
        assert!(results.contains(">shop-api</a>"), "{results}");
        assert!(results.contains(" Route</td>"), "{results}");
        assert!(results.contains("/traffic?period=day\""), "{results}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_hour_is_on_the_overview_and_on_the_list_of_projects() {
    for world in worlds().await {
        let first = node(&world, "fra-edge-01", "fra").await;
        let overview = world.get("/projects/{project}", &world.admin).await;
        let panel = between(&overview.text, "id=\"traffic-panel\"", "</section>");
        let none = "No node reported a request in an hour until ";
        assert!(panel.contains(none), "{panel}");
        assert!(!panel.contains("<svg class=\"chart\""), "{panel}");
        let call = world.call().await;
        let deleted = world.app.delete_node(&call, world.project, first).await;
        deleted.unwrap();
        let _fleet = Fleet::new(&world).await;
        let (call, hour) = (world.call().await, TrafficPeriod::Hour);
        let whole = world.app.project_traffic(&call, world.project, hour, None);
        let whole = whole.await.unwrap();
        let totals = world.app.traffic_totals(&call, world.project, hour).await;
        let totals = totals.unwrap();
        assert_eq!((totals.total, &totals.steps), (whole.total, &whole.steps));
        assert_eq!(totals.total.week_before.unwrap().requests, 1_000);
        let overview = world.get("/projects/{project}", &world.admin).await;
        let panel = between(&overview.text, "id=\"traffic-panel\"", "</section>");
        for part in [
            " requests in an hour, ",
            " times as many as a week before; 0.",
            "1000 a week before",
            "aria-label=\"Requests over an hour: ",
            "aria-label=\"99th percentile over an hour: ",
            "/traffic\"",
        ] {
            assert!(panel.contains(part), "{part}: {panel}");
        }
        assert_eq!(panel.matches("<svg class=\"chart\"").count(), 3, "{panel}");
        let list = world.get("/?all=1", &world.admin).await;
        let card = between(&list.text, "<ul class=\"cards\">", "</ul>");
        assert!(card.contains(" requests in an hour, "), "{card}");
        assert_eq!(card.matches("<svg class=\"chart\"").count(), 3, "{card}");
    }
}

/// Plans a rollout with a condition on metrics of `server`, this number of seconds from now: IDs
/// are sorted by time.
async fn plan(world: &World, fleet: &Fleet, seconds: i64, server: Option<&str>) {
    let condition = server.map(|url| MetricCondition {
        url: url.to_owned(),
        query: "orders_failed:ratio".to_owned(),
        min: None,
        max: Some(0.01),
    });
    let new = NewRollout {
        bundle: fleet.spring,
        strategy: Strategy {
            batch: BatchSize::Count(1),
            max_unavailable: 0,
            deadline_secs: 600,
            soak_secs: 60,
            gate: None,
            needs_approval: false,
            on_failure: OnFailure::Pause,
        },
        condition,
        labels: BTreeMap::new(),
        not_before: None,
    };
    let call = world.call_at(world.app.now() + SignedDuration::from_secs(seconds));
    let (call, named) = (call.await, NodeSelection::Named(vec![fleet.nodes[11]]));
    let made = world.app.create_rollout(&call, world.project, new, named);
    made.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_are_linked_to_the_server_that_the_newest_condition_names() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let panel = async || {
        let shown = world.get("/projects/{project}/traffic", &world.admin).await;
        between(&shown.text, "id=\"prometheus\"", "</section>").to_owned()
    };
    let none = panel().await;
    assert!(!none.contains("Open in Prometheus"), "{none}");
    assert!(none.contains("Once a rollout has a condition"), "{none}");
    for (seconds, server) in [
        (1, Some("https://old.example.com")),
        (2, Some("https://prometheus.example.com/")),
        (3, None),
    ] {
        plan(&world, &fleet, seconds, server).await;
    }
    let linked = panel().await;
    let link = "href=\"https://prometheus.example.com/graph?g0.expr=sum+by+";
    assert_eq!(linked.matches(link).count(), 2, "{linked}");
    let opened = linked.matches("Open in Prometheus").count();
    assert_eq!(opened, 3, "{linked}");
    assert!(linked.contains("increase(proxy_requests_total[1h])"));
}
