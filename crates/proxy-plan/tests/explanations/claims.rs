//! Tests inside a configuration that state the claims of a token.

use proxy_plan::failed_tests;

const API: &str = r#"
    routes {
        route "api" {
            jwt {
                issuer "https://id.test"
                audience "api"
                jwks-url "https://id.test/keys"
                jwks-upstream "id"
                require-scope "orders:read"
                require-claim "role" "clerk"
                claim-header "X-Email" "email"
                claim-header "X-Roles" "role"
            }
            request-headers { set "X-User" "{user}" }
            upstream "back"
        }
    }
    upstreams {
        upstream "back" { target "127.0.0.1:9001" }
        upstream "id" { target "id.test:443"; tls }
    }
"#;

/// The differences of the tests that fail.
fn failed(tests: &str) -> Vec<String> {
    let text = format!("{API}tests {{\n{tests}\n}}");
    let loaded = proxy_config::parse(&text, "api.kdl").unwrap_or_else(|report| panic!("{report}"));
    let failed = failed_tests(&loaded.model);
    failed.into_iter().map(|failed| failed.difference).collect()
}

#[test]
fn a_test_states_the_claims_of_a_token() {
    let tests = r#"
        test "no token, no entry" {
            request "GET" "/"
            expect { status 401; reason "credentials_missing" }
        }
        test "a token that nothing is known of is checked by the running proxy" {
            request "GET" "/"
            header "Authorization" "Bearer x.y.z"
            expect { upstream "back"; request-header "X-User" "{user}" }
        }
        test "a clerk may read" {
            request "GET" "/"
            claim "sub" "ann"
            claim "scope" "mail orders:read"
            claim "role" "clerk"
            claim "role" "cashier"
            header "X-Email" "root@id.test"
            expect {
                upstream "back"
                request-header "X-User" "ann"
                request-header "X-Roles" "clerk,cashier"
                no-request-header "X-Email"
                no-request-header "Authorization"
            }
        }
        test "another role may not" {
            request "GET" "/"
            claim "scope" "orders:read"
            claim "role" "cook"
            expect { status 403; reason "token_claim_missing" }
        }
        test "nor may one without the scope" {
            request "GET" "/"
            claim "scope" "orders:reader"
            claim "role" "clerk"
            expect { status 403 }
        }
    "#;
    assert_eq!(failed(tests), [""; 0]);
    let wrong = r#"
        test "a cook" { request "GET" "/"; claim "role" "cook"; expect { upstream "back" } }
    "#;
    let differences = failed(wrong);
    let [difference] = differences.as_slice() else {
        panic!("one test fails: {differences:?}");
    };
    assert!(
        difference.starts_with("there is no upstream"),
        "{difference}"
    );
}

#[test]
fn a_live_test_states_no_claims() {
    let live = r#"test "x" { request "GET" "/"; claim "sub" "a"; live #true; expect { upstream "back" } }"#;
    let text = format!("{API}tests {{ {live} }}");
    let report = proxy_config::parse(&text, "api.kdl").map(|_| ());
    let report = report.unwrap_err().to_string();
    assert!(
        report.contains("a live test has no token of these claims"),
        "{report}"
    );
}
