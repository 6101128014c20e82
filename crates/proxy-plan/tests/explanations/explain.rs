//! Contents of an explanation: the decision, the reasons against other routes, and the place of
//! every setting.

use crate::support::{Only, SHOP, explain, plan, request};
use proxy_errors::Reason;
use proxy_health::HealthCause;
use proxy_plan::explain::{Handler, Lost, MatchReason, Readiness};
use proxy_plan::{
    AssumeHealthy, Decision, ExplainError, Explanation, KnownHealth, Outcome, RequestHead, render,
};
use proxy_routing::DecidingRank;
use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

#[test]
fn a_forwarded_request_is_explained_on_one_page() {
    let explanation = explain(SHOP, "GET http://Shop.Example.com:8080/api/./cart?x=1");

    insta::assert_snapshot!("forwarded", render::text(&explanation));
    insta::assert_json_snapshot!("forwarded_json", render::json(&explanation));
}

#[test]
fn a_default_route_is_named_as_such() {
    let explanation = explain(SHOP, "GET http://other.example:8080/nowhere");

    let winner = explanation.winner.as_ref().unwrap();
    assert_eq!(winner.route.name, "fallback");
    let source = "edge.kdl:4".to_owned();
    assert_eq!(winner.taken, MatchReason::Default { source });
    assert!(
        explanation
            .rejected
            .iter()
            .all(|one| one.route.name != "fallback")
    );
    insta::assert_snapshot!("default_route", render::text(&explanation));
}

#[test]
fn a_request_without_a_route_gets_the_nearest_one() {
    let explanation = explain(SHOP, "PUT http://other.example:8081/apix");

    insta::assert_snapshot!("no_route", render::text(&explanation));
    insta::assert_json_snapshot!("no_route_json", render::json(&explanation));
}

#[test]
fn a_refused_path_is_shown_unchanged() {
    let explanation = explain(SHOP, "GET http://shop.example.com:8080/x%2F..%2Fapi/cart");

    assert_eq!(explanation.path.sent, "/x%2F..%2Fapi/cart");
    assert_eq!(explanation.path.seen, None);
    assert!(explanation.rejected.is_empty());
    let Handler::Refused { problem, .. } = &explanation.answerer else {
        panic!("{:?}", explanation.answerer);
    };
    assert_eq!(problem.reason(), Reason::AmbiguousPath);
    let page = render::text(&explanation);
    assert!(
        page.contains("path      /x%2F..%2Fapi/cart (refused)\n"),
        "{page}"
    );
}

#[test]
fn the_same_path_is_taken_where_the_listener_forwards_it() {
    let asked = request("GET http://shop.example.com:8081/api/%2Fcart");
    let explanation = asked.ask(&plan(SHOP), &Only(&[0])).unwrap();

    assert_eq!(explanation.listener.unwrap().name, "internal");
    assert_eq!(explanation.winner.unwrap().route.name, "shop");
}

#[test]
fn unavailable_targets_have_a_reason() {
    let plan = plan(SHOP);
    let unhealthy_reason = "connection refused".to_owned();
    plan.upstreams()[0].targets[1].state.fail(
        HealthCause::ActiveCheck,
        &unhealthy_reason,
        SystemTime::UNIX_EPOCH,
    );

    let asked = request("GET http://shop.example.com:8080/api");
    let some = asked.ask(&plan, &Only(&[0, 2])).unwrap();
    let Handler::Upstream {
        target, candidates, ..
    } = &some.answerer
    else {
        panic!("{:?}", some.answerer);
    };
    assert_eq!(target, "app.internal:80");
    let unhealthy = Readiness::Unhealthy(Some("connection refused".to_owned()));
    let states: Vec<_> = candidates.iter().map(|one| one.readiness.clone()).collect();
    assert_eq!(states, [Readiness::Ready, unhealthy, Readiness::Next]);

    let none = asked.ask(&plan, &Only(&[])).unwrap();
    let page = render::text(&none);
    assert!(
        page.contains("answer    503 NO_HEALTHY_UPSTREAM\n"),
        "{page}"
    );
    assert!(
        page.contains("10.0.0.2:8080             unhealthy: connection refused\n"),
        "{page}"
    );
}

#[test]
fn a_backup_target_is_ready_and_waits() {
    let plan = plan(
        "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }\n\
         upstreams { upstream \"u\" { target \"10.0.0.1:80\"; target \"10.0.0.2:80\" backup=#true } }\n\
         routes { route \"all\" { upstream \"u\" } }\n",
    );
    let asked = request("GET http://shop.example.com:8080/");

    let explanation = asked.ask(&plan, &AssumeHealthy::new(&plan)).unwrap();
    let Handler::Upstream { candidates, .. } = &explanation.answerer else {
        panic!("{:?}", explanation.answerer);
    };
    let states: Vec<_> = candidates.iter().map(|one| one.readiness.clone()).collect();
    assert_eq!(states, [Readiness::Next, Readiness::Backup]);
    let page = render::text(&explanation);
    assert!(page.contains("10.0.0.2:80  backup\n"), "{page}");

    plan.upstreams()[0].targets[0].state.fail(
        HealthCause::ActiveCheck,
        "connection refused",
        SystemTime::UNIX_EPOCH,
    );
    let explanation = asked.ask(&plan, &KnownHealth::new(&plan)).unwrap();
    let Handler::Upstream { target, .. } = &explanation.answerer else {
        panic!("{:?}", explanation.answerer);
    };
    assert_eq!(target, "10.0.0.2:80");
}

#[test]
fn a_sticky_session_stays_at_its_target_as_in_the_proxy() {
    let plan = plan(
        "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }\n\
         upstreams { upstream \"u\" { load-balancing \"sticky\"; target \"10.0.0.1:80\"\n\
             target \"10.0.0.2:80\" { weight 0 }; target \"10.0.0.3:80\" { backup #true } } }\n\
         routes { route \"all\" { upstream \"u\" } }",
    );
    let upstream = &plan.upstreams()[0];
    let sticky = upstream.balancing.sticky.as_ref().unwrap();
    let asked = |position: usize| {
        let value = sticky.tokens[position].value();
        let value = std::str::from_utf8(&value).unwrap();
        let mut asked = request("GET /");
        let cookie = format!("{}={value}", sticky.cookie);
        asked.headers = vec![("Cookie".to_owned(), cookie)];
        asked
    };
    let target = |explanation: &Explanation| {
        let Handler::Upstream { target, .. } = &explanation.answerer else {
            panic!("{:?}", explanation.answerer);
        };
        target.clone()
    };
    let label = |position: usize| upstream.targets[position].label.to_string();
    // A target of weight 0 and a backup keep their sessions, and so does a draining one.
    upstream.targets[0].state.drain(true);
    for position in 0..3 {
        let (known, assumed) = (KnownHealth::new(&plan), AssumeHealthy::new(&plan));
        let known = asked(position).ask(&plan, &known).unwrap();
        assert_eq!(target(&known), label(position));
        let assumed = asked(position).ask(&plan, &assumed).unwrap();
        assert_eq!(target(&assumed), label(position));
    }
    // An unhealthy one does not.
    let state = &upstream.targets[2].state;
    state.fail(HealthCause::ActiveCheck, "refused", SystemTime::UNIX_EPOCH);
    let known = asked(2).ask(&plan, &KnownHealth::new(&plan)).unwrap();
    assert!(!matches!(&known.answerer, Handler::Upstream { target, .. } if *target == label(2)));
}

#[test]
fn a_target_that_clients_may_send_is_explained() {
    let text = "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }\n\
         upstreams { upstream \"u\" { target \"10.0.0.1:80\" } }\n\
         routes { route \"odd\" { matches { path-regex \"^/a\" }; upstream \"u\" } }";
    for url in ["/a<b", "/a?q=\"x\"", "http://a.test/a`b?<>", "/a{b}|c^d"] {
        let explanation = explain(text, &format!("GET {url}"));
        let route = explanation.winner.map(|winner| winner.route.name);
        assert_eq!(route.as_deref(), Some("odd"), "{url}");
    }
}

#[test]
fn claims_that_only_a_trusted_proxy_may_make_are_named() {
    let text = |trusted: &str| {
        format!(
            "listeners {{ listener \"web\" {{ address \"127.0.0.1:8080\"; {trusted} }} }}\n\
             routes {{ route \"all\" {{ redirect \"https\" }} }}"
        )
    };
    let line = "GET / X-Forwarded-Proto:https";
    let trusting = explain(&text("trusted-proxies \"10.0.0.0/8\""), line);

    assert_eq!(trusting.ignored, ["x-forwarded-proto"]);
    let page = render::text(&trusting);
    assert!(
        page.contains("x-forwarded-proto: only a peer of `trusted-proxies`"),
        "{page}"
    );
    assert_eq!(
        render::json(&trusting)["request"]["ignored"][0],
        "x-forwarded-proto"
    );
    assert!(
        explain(&text(""), line).ignored.is_empty(),
        "no peer is trusted"
    );
}

#[test]
fn secrets_of_the_configuration_are_never_shown() {
    let explanation = explain(SHOP, "GET http://shop.example.com:8080/api");

    let message = format!(
        "{}{}",
        render::text(&explanation),
        render::json(&explanation)
    );
    assert!(message.contains("x-api-key: (redacted)"));
    assert!(message.contains("x-beta-token: (redacted)"));
    assert!(!message.contains("k-12345") && !message.contains("b-67890"));
}

#[test]
fn values_of_fields_with_tokens_are_never_shown() {
    let explanation = explain(
        "listeners { listener \"web\" { address \"127.0.0.1:8080\" } }\n\
         upstreams { upstream \"u\" { target \"10.0.0.1:80\" } }\n\
         routes {\n\
             route \"one\" { matches { header \"X-Jwt\" \"s3cret\" }; upstream \"u\" }\n\
             route \"all\" { upstream \"u\"; request-headers { set \"X-Jwt\" \"s3cret\" } }\n\
             route \"v\" { matches { path \"/v\" }; upstream \"u\"; jwt { issuer \"i\"; audience \"a\"\n\
                 jwks-url \"http://i.test/jwks\"; jwks-upstream \"u\"; header \"X-Jwt\" } }\n\
         }\n",
        "GET http://a.test:8080/",
    );

    let message = format!(
        "{}{}",
        render::text(&explanation),
        render::json(&explanation)
    );
    assert!(message.contains("x-jwt: (redacted)"), "{message}");
    assert!(!message.contains("s3cret"), "{message}");
}

#[test]
fn overridden_settings_are_not_shown_twice() {
    let explanation = explain(SHOP, "GET http://shop.example.com:8080/api");

    let paths: Vec<_> = explanation
        .settings
        .iter()
        .map(|one| one.path.as_str())
        .collect();
    let has = |path: &str| paths.contains(&path);
    assert!(has("routes.route[\"shop\"].policies.timeouts.connect-secs"));
    assert!(!has("upstreams.upstream[\"app\"].timeouts.connect-secs"));
    assert!(has("upstreams.upstream[\"app\"].timeouts.request-secs"));
    assert!(!has("limits.max-body-size-bytes"));
    assert!(!has("limits.max-idle-connections-per-upstream"));

    let plain = explain(SHOP, "POST http://a.example:8080/api");
    let paths: Vec<_> = plain.settings.iter().map(|one| one.path.as_str()).collect();
    assert!(paths.contains(&"upstreams.upstream[\"app\"].timeouts.connect-secs"));
    assert!(paths.contains(&"limits.max-body-size-bytes"));
}

#[test]
fn the_agents_of_a_route_are_listed_in_their_order() {
    let text = r#"
        listeners { listener "a" { address "127.0.0.1:80" } }
        routes { route "r" { upstream "u"; agents "waf" "auth" } }
        upstreams { upstream "u" { target "127.0.0.1:1" } }
        agents {
            agent "auth" { unix-socket "/run/auth.sock"; failure-mode "closed" }
            agent "waf" { unix-socket "/run/waf.sock"; failure-mode "open" }
        }
    "#;

    let explanation = explain(text, "GET http://a.test/");

    let agents = explanation.agents.iter();
    let names: Vec<_> = agents.map(|agent| agent.name.as_str()).collect();
    assert_eq!(names, ["waf", "auth"]);
}

#[test]
fn every_rejected_route_has_its_reason() {
    let explanation = explain(SHOP, "GET http://shop.example.com:8080/api");

    let why = |id: &str| {
        let rejected = explanation.rejected.iter();
        let mut of_route = rejected.filter(|one| one.route.name == id);
        of_route.next().unwrap().why.clone()
    };
    let by = "shop".to_owned();
    let because = DecidingRank::Priority;
    assert_eq!(why("plain"), Lost::Outranked { by, because });
    let Lost::Condition(unmet) = why("admin") else {
        panic!("{:?}", why("admin"));
    };
    assert_eq!(
        (&*unmet.wanted, &*unmet.got),
        ("admin.example.com", "shop.example.com")
    );
}

#[test]
fn an_explanation_is_the_decision() {
    let plan = plan(SHOP);
    let view = AssumeHealthy::new(&plan);
    for line in [
        "GET http://shop.example.com:8080/api",
        "GET http://shop.example.com:8080/api/..%2f",
        "POST http://shop.example.com:8080/api Content-Length:600000000",
        "POST http://a.example:8080/api Content-Length:600000000",
        "DELETE http://a.example:8081/x",
        "CONNECT a.example:443",
        "OPTIONS * Host:a.example",
    ] {
        let asked = request(line);
        let explanation = asked.ask(&plan, &view).unwrap();
        let decision = decide(&plan, &asked, &view, &explanation.host.sent);
        let route = decision.route.map(|route| route.id.to_string());
        assert_eq!(
            explanation.winner.map(|one| one.route.name),
            route,
            "{line}"
        );
        let agree = match (&explanation.answerer, &decision.outcome) {
            (Handler::Upstream { target, .. }, Outcome::Forward(upstream, next)) => {
                *target == *upstream.targets[usize::from(next.target)].label
            }
            (Handler::Builtin(ours), Outcome::Answer(theirs)) => ours == theirs,
            (Handler::Refused { problem, .. }, Outcome::Refuse(theirs)) => problem == theirs,
            _ => false,
        };
        assert!(
            agree,
            "{line}: {:?} {:?}",
            explanation.answerer, decision.outcome
        );
    }
}

fn decide<'p>(
    plan: &'p proxy_plan::Plan,
    asked: &proxy_plan::ExplainRequest,
    view: &AssumeHealthy,
    host: &str,
) -> Decision<'p> {
    let uri: http::Uri = asked.url.parse().unwrap();
    let headers = asked.headers.iter();
    let headers: http::HeaderMap = headers
        .map(|(name, value)| {
            let name: http::HeaderName = name.parse().unwrap();
            (name, value.parse().unwrap())
        })
        .collect();
    let length = headers.get("content-length");
    let head = RequestHead {
        listener: usize::from(asked.url.contains(":8081")),
        method: &asked.method.parse().unwrap(),
        host,
        target: uri.path_and_query(),
        headers: &headers,
        content_length: length.map(|value| value.to_str().unwrap().parse().unwrap()),
        client_ip: Ipv4Addr::LOCALHOST.into(),
        is_tls: false,
        is_peer_trusted: false,
    };
    plan.decide(&head, view, Duration::ZERO)
}

#[test]
fn a_host_header_counts_more_than_the_url() {
    let explanation = explain(SHOP, "GET http://127.0.0.1:8080/api Host:shop.example.com");

    assert_eq!(explanation.host.sent, "shop.example.com");
    assert_eq!(explanation.listener.unwrap().name, "public");
}

#[test]
fn white_space_around_a_value_is_not_part_of_it() {
    let plan = plan(SHOP);
    let mut asked = request("GET http://127.0.0.1:8080/api");
    asked.headers = vec![("Host".to_owned(), " \tshop.example.com ".to_owned())];

    let explanation = asked.ask(&plan, &AssumeHealthy::new(&plan)).unwrap();

    assert_eq!(explanation.host.sent, "shop.example.com");
}

#[test]
fn questions_that_no_client_could_put_are_faults() {
    let plan = plan(SHOP);
    let view = AssumeHealthy::new(&plan);
    let fault = |line: &str| request(line).ask(&plan, &view).unwrap_err();
    assert_eq!(fault("G@T /"), ExplainError::Method("G@T".to_owned()));
    for url in ["ftp://a/", "a.example", "http://", "/a b\u{1}"] {
        let mut asked = request("GET /");
        asked.url = url.to_owned();
        let fault = asked.ask(&plan, &view).unwrap_err();
        assert_eq!(fault, ExplainError::Url(url.to_owned()));
    }
    assert_eq!(fault("GET / Host:a Host:b"), ExplainError::TwoHosts);
    let length = ExplainError::ContentLength("-1".to_owned());
    assert_eq!(fault("PUT / Content-Length:-1"), length);

    let mut asked = request("GET /");
    asked.listener = Some("private".to_owned());
    let fault = asked.ask(&plan, &view).unwrap_err();
    let text = "there is no listener `private`; there are: public, internal";
    assert_eq!(fault.to_string(), text);

    for line in ["no colon", ": x", "A: b\u{7}"] {
        assert!(proxy_plan::ExplainRequest::header(line).is_err(), "{line}");
    }
}

#[test]
fn a_redirect_and_a_response_are_explained() {
    const MOVED: &str = r#"
        listeners {
            listener "plain" { address "127.0.0.1:80" }
            listener "tls" {
                address "127.0.0.1:443"; protocol "https"
                tls { cert-file "a.pem"; key-file "a.key" }
            }
        }
        routes {
            route "down" { matches { path "/down" }; respond 503 "back soon" }
            route "all" { redirect "https" status=308 }
        }
    "#;
    let redirect = explain(MOVED, "GET http://a.test/b?c");
    let text = render::text(&redirect);
    assert!(
        text.contains("redirect 308 to https://a.test/b?c"),
        "{text}"
    );
    let json = render::json(&redirect);
    assert_eq!(json["outcome"]["location"], "https://a.test/b?c");
    let text = render::text(&explain(MOVED, "GET https://a.test/b"));
    assert!(text.contains("redirect_loop"), "{text}");
    let text = render::text(&explain(MOVED, "GET http://a.test/down"));
    assert!(
        text.contains("response 503 of the route, 9 bytes"),
        "{text}"
    );
}

#[test]
fn the_path_for_the_upstream_is_explained() {
    const API: &str = r#"
        listeners { listener "plain" { address "127.0.0.1:80" } }
        routes { route "api" { upstream "u"; rewrite { replace-prefix "/api" "/v2" } } }
        upstreams { upstream "u" { target "127.0.0.1:8080" } }
    "#;
    let explanation = explain(API, "GET http://a.test/api/x?y");
    let text = render::text(&explanation);
    assert!(
        text.contains("rewritten") && text.contains("/v2/x?y"),
        "{text}"
    );
    assert_eq!(render::json(&explanation)["rewritten"], "/v2/x?y");
    let explanation = explain(API, "GET http://a.test/other");
    assert_eq!(
        render::json(&explanation)["rewritten"],
        serde_json::Value::Null
    );
}
