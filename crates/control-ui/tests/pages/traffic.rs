//! Traffic over time: from heartbeats to the page, with the figures of the interface.

use crate::fleet::Fleet;
use crate::world::{Shown, between, worlds};
use axum::http::StatusCode;
use control_domain::TrafficPeriod;

#[tokio::test(flavor = "multi_thread")]
async fn requests_of_heartbeats_are_shown_beside_a_week_before() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let path = "/projects/{project}/traffic";
        let shown = world.get(path, &world.admin).await;
        assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
        let heading = shown.heading();
        assert!(heading.contains(" requests in an hour, "), "{heading}");
        assert!(
            heading.contains("% more than a week before; 0."),
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
        for period in ["day", "week"] {
            let path = format!("{path}?period={period}&by=region");
            let shown = world.get(&path, &world.admin).await;
            assert_eq!(shown.status, StatusCode::OK, "{}", shown.text);
        }
    }
}

/// The tables, the charts and the text of their figures.
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
