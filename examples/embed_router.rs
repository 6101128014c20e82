//! The router alone: finds the rule of a request, and explains the choice.

use http::{HeaderMap, Method};
use proxy_routing::{Head, HostPattern, PathPattern, Router, Rule};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut api = Rule::new("api");
    api.hosts = vec![HostPattern::parse("*.example.com")?];
    api.paths = vec![PathPattern::prefix("/api")?];
    let router = Router::new(vec![api, Rule::new("rest")]);

    let head = Head {
        listener: "main",
        method: &Method::GET,
        host: "shop.example.com",
        path: "/api/orders",
        query: "",
        headers: &HeaderMap::new(),
    };
    let found = router
        .find(&head)
        .and_then(|index| router.rules().get(index));
    assert_eq!(found.map(|rule| rule.id.as_str()), Some("api"));
    Ok(())
}
