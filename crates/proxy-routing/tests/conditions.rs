//! The values that each condition accepts and its constructor refuses.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use http::HeaderMap;
use proxy_routing::{
    HeaderCondition, HostError, HostPattern, PathError, PathPattern, PatternError, QueryCondition,
};

fn path(setting: &str, text: &str) -> PathPattern {
    match setting {
        "path" => PathPattern::exact(text),
        "path-prefix" => PathPattern::prefix(text),
        _ => PathPattern::regex(text),
    }
    .unwrap()
}

#[test]
fn hosts_match_whole_or_below() {
    let cases = [
        ("example.com", "example.com", true),
        ("Example.COM.", "example.com", true),
        ("example.com", "a.example.com", false),
        ("*.example.com", "a.example.com", true),
        ("*.Example.com", "a.b.example.com", true),
        ("*.example.com", "example.com", false),
        ("*.example.com", "badexample.com", false),
        ("*", "anything", true),
        ("*", "", false),
        ("[0::1]", "[::1]", true),
        ("[::1]", "[::2]", false),
    ];
    for (pattern, host, expected) in cases {
        let matches = HostPattern::parse(pattern).unwrap().matches(host);
        assert_eq!(matches, expected, "{pattern} {host}");
    }
}

#[test]
fn a_host_condition_that_could_mislead_is_refused() {
    let cases = [
        ("", PatternError::Host(HostError::Empty)),
        ("example.com:80", PatternError::HostPort),
        ("example.com:", PatternError::HostPort),
        ("*.example.com:80", PatternError::HostPort),
        ("a.*.com", PatternError::Wildcard),
        ("*a.com", PatternError::Wildcard),
        ("*.*.com", PatternError::Wildcard),
        ("*.[::1]", PatternError::Wildcard),
        ("*.", PatternError::Host(HostError::Empty)),
        ("http://example.com", PatternError::Host(HostError::Port)),
        ("bücher.de", PatternError::Host(HostError::Character)),
    ];
    for (text, fault) in cases {
        assert_eq!(HostPattern::parse(text), Err(fault), "{text}");
    }
}

#[test]
fn paths_match_whole_or_by_prefix_or_by_regex() {
    let cases = [
        ("path", "/api", "/api", true),
        ("path", "/api", "/api/", false),
        ("path", "/%61pi", "/api", true),
        ("path", "/caf%c3%a9", "/caf%C3%A9", true),
        ("path", "/café", "/caf%C3%A9", true),
        ("path", "/a%2fb", "/a%2Fb", true),
        ("path-prefix", "/api", "/api", true),
        ("path-prefix", "/api", "/api/", true),
        ("path-prefix", "/api", "/api/v1", true),
        ("path-prefix", "/api", "/apix", false),
        ("path-prefix", "/api/", "/api", false),
        ("path-prefix", "/api/", "/api/v1", true),
        ("path-prefix", "/", "/anything", true),
        ("path-prefix", "/", "*", false),
        ("path-regex", "/v[0-9]+", "/api/v1/x", true),
        ("path-regex", "^/v[0-9]+$", "/v1/x", false),
        ("path-regex", "^/caf%C3%A9$", "/caf%C3%A9", true),
        ("path-regex", "(?i)^/api$", "/API", true),
        ("path-regex", r"^/\d\w$", "/1a", true),
    ];
    for (setting, text, request, expected) in cases {
        let matches = path(setting, text).matches(request);
        assert_eq!(matches, expected, "{setting} {text} {request}");
    }
}

#[test]
fn a_path_condition_that_no_request_could_meet_is_refused() {
    let cases = [
        ("", PatternError::Path(PathError::NotAbsolute)),
        ("api", PatternError::Path(PathError::NotAbsolute)),
        ("/a?b=1", PatternError::PathEnd),
        ("/a#b", PatternError::PathEnd),
        ("/../a", PatternError::Path(PathError::LeavesRoot)),
        ("/%zz", PatternError::Path(PathError::BadEscape)),
        ("/%00", PatternError::Path(PathError::Nul)),
    ];
    for (text, fault) in cases {
        assert_eq!(PathPattern::exact(text), Err(fault.clone()), "{text}");
        assert_eq!(PathPattern::prefix(text), Err(fault), "{text}");
    }
}

#[test]
fn a_regex_is_refused_for_its_grammar_its_size_or_its_letters() {
    let fault = |text: &str| PathPattern::regex(text).unwrap_err();

    assert!(matches!(fault("/(a"), PatternError::RegexSyntax(text) if text.contains("unclosed")));
    assert!(matches!(
        fault("[a-z]{1000}{1000}"),
        PatternError::RegexTooLarge(_)
    ));
    assert!(matches!(
        fault(&"(".repeat(100_000)),
        PatternError::RegexSyntax(_)
    ));
    assert_eq!(fault("/café"), PatternError::RegexNotAscii);
}

#[test]
fn headers_match_by_presence_or_by_one_line() {
    let mut headers = HeaderMap::new();
    headers.append("x-a", "1".parse().unwrap());
    headers.append("x-a", "2, 3".parse().unwrap());
    let cases = [
        ("X-A", true),
        ("X-B", false),
        ("X-A: 1", true),
        ("x-a:2, 3", true),
        ("X-A: 2", false),
        ("X-A:", false),
        ("X-B: 1", false),
    ];
    for (text, expected) in cases {
        assert_eq!(
            HeaderCondition::parse(text).unwrap().holds(&headers),
            expected,
            "{text}"
        );
    }
    assert_eq!(
        HeaderCondition::equals("X-A", "1"),
        HeaderCondition::parse("x-a: 1")
    );
    assert_eq!(
        HeaderCondition::parse(":authority: a"),
        Err(PatternError::HeaderName)
    );
    assert_eq!(HeaderCondition::parse("a b"), Err(PatternError::HeaderName));
    assert_eq!(
        HeaderCondition::parse("a: \u{1}"),
        Err(PatternError::HeaderValue)
    );
}

#[test]
fn query_parameters_match_by_presence_or_by_decoded_value() {
    let cases = [
        ("a", "a=1", true),
        ("a", "b&a", true),
        ("a", "ab=1", false),
        ("a", "", false),
        ("a=1", "a=2&a=1", true),
        ("a=1", "a=11", false),
        ("a=", "a", true),
        ("a=", "a=", true),
        ("a=x y", "a=x+y", true),
        ("a=x y", "a=x%20y", true),
        ("a=é", "a=%c3%A9", true),
        ("ä=1", "%C3%A4=1", true),
        ("a=1=2", "a=1=2", true),
        ("a=%", "a=%", true),
        ("a=%4", "a=%4", true),
        ("a=100%", "a=100%25", true),
    ];
    for (text, query, expected) in cases {
        let condition = QueryCondition::parse(text).unwrap();
        assert_eq!(condition.holds(query), expected, "{text} {query}");
    }
    assert_eq!(QueryCondition::parse(""), Err(PatternError::QueryName));
    assert_eq!(QueryCondition::parse("=1"), Err(PatternError::QueryName));
}

#[test]
fn conditions_are_written_as_they_are_configured() {
    assert_eq!(
        HostPattern::parse("*.A.com").unwrap().to_string(),
        "*.a.com"
    );
    assert_eq!(HostPattern::parse("*").unwrap().to_string(), "*");
    assert_eq!(path("path-prefix", "/a").to_string(), "path-prefix \"/a\"");
    assert_eq!(
        HeaderCondition::parse("X-A: b").unwrap().to_string(),
        "x-a: b"
    );
    assert_eq!(QueryCondition::parse("a=b").unwrap().to_string(), "a=b");
}
