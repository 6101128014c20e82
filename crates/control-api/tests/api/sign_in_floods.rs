//! Many wrong passwords, and response times that must not reveal whether an account exists.
//!
//! `CONTROLD_TIMES=200` is the number of accounts of each kind to compare, in one round. Without
//! it, there are few accounts and several rounds.

use crate::people::Person;
use crate::world::{PASSWORD, World, worlds};
use axum::http::StatusCode;
use control_app::{App, Error, SignedIn, Visit};
use control_auth::{Password, Secret};
use control_domain::Role;
use jiff::{SignedDuration, Timestamp};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use tokio::task::JoinSet;

const WRONG: &str = "wrong horse battery";
const FLOOD: u32 = 10_000;
/// Number of accounts in one round. Checking a password takes a tenth of a second.
const ACCOUNTS: u32 = 40;
/// Number of rounds: on a busy machine single rounds may differ, but a real difference appears in
/// each.
const ROUNDS: usize = 5;
/// Number of simultaneous requests.
const AT_ONCE: usize = 250;

fn visit(number: u32, now: Timestamp, known_browser: Option<Secret>) -> Visit {
    Visit {
        client_ip: Some(IpAddr::V4(Ipv4Addr::from_bits(0x0b00_0000 + number))),
        browser: String::new(),
        known_browser,
        now,
        correlation_id: String::new(),
    }
}

async fn sign_in(app: &Arc<App>, visit: &Visit, email: &str, password: &str) -> Result<(), Error> {
    let password = Password::new(password.to_owned());
    let signed_in = app.sign_in(visit, email, password).await?;
    assert!(matches!(signed_in, SignedIn::Session(_)));
    Ok(())
}

/// Sends passwords from many addresses; returns how many were checked.
async fn flood(world: &World, person: &Person) -> usize {
    let (mut tasks, mut compared) = (JoinSet::new(), 0);
    let now = world.app.now();
    for number in 0..FLOOD {
        let (app, email) = (Arc::clone(&world.app), person.email.clone());
        tasks.spawn(async move { sign_in(&app, &visit(number, now, None), &email, WRONG).await });
        while AT_ONCE <= tasks.len() {
            let done = tasks.join_next().await.unwrap().unwrap();
            compared += usize::from(matches!(done, Err(Error::WrongSignIn)));
        }
    }
    while let Some(done) = tasks.join_next().await {
        compared += usize::from(matches!(done.unwrap(), Err(Error::WrongSignIn)));
    }
    compared
}

#[tokio::test]
async fn the_owner_can_sign_in_within_a_minute_of_ten_thousand_wrong_passwords() {
    for world in worlds().await {
        let person = world.person(world.org, Role::Reader).await;
        let browser = world.sign_in(&person).await.browser;
        let browser = browser.split_once('=').unwrap().1;
        let compared = flood(&world, &person).await;
        assert!((1..=12).contains(&compared), "{compared}");
        let now = world.app.now();
        let known = visit(1, now, Some(Secret::presented(browser)));
        sign_in(&world.app, &known, &person.email, PASSWORD)
            .await
            .unwrap();
        let new = visit(2, now, None);
        let held = sign_in(&world.app, &new, &person.email, PASSWORD).await;
        let Err(Error::TooManyAttempts { retry_after_secs }) = held else {
            panic!("{held:?}")
        };
        assert!(retry_after_secs <= 60, "{retry_after_secs}");
        let wait = SignedDuration::from_secs(i64::try_from(retry_after_secs).unwrap());
        let new = visit(3, now + wait, None);
        sign_in(&world.app, &new, &person.email, PASSWORD)
            .await
            .unwrap();
    }
}

/// Creates an account: with a password, also with a second factor, or without a password.
async fn account(world: &World, number: u32) -> Person {
    if number % 3 == 2 {
        let mut user = world.new_user(false);
        user.password = None;
        let mut tx = world.store.begin().await.unwrap();
        tx.insert_user(&user).await.unwrap();
        tx.commit().await.unwrap();
        return Person {
            id: user.id,
            email: user.email.to_string(),
        };
    }
    let person = world.person(world.org, Role::Reader).await;
    if number % 3 == 1 {
        world.give_totp(person.id).await;
    }
    person
}

/// Returns the median time of responses to wrong passwords: for existing accounts, and for missing
/// ones, in turn.
async fn medians(world: &World, known: &[Person]) -> (SignedDuration, SignedDuration) {
    let (mut of_known, mut of_unknown) = (Vec::new(), Vec::new());
    for person in known {
        let unknown = format!("un{}", person.email);
        for (email, times) in [(&person.email, &mut of_known), (&unknown, &mut of_unknown)] {
            world.change_address();
            let start = world.app.precise_now();
            let answer = world.try_sign_in(email, WRONG).await;
            times.push(world.app.precise_now().duration_since(start));
            assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.body);
        }
    }
    let median = |mut times: Vec<SignedDuration>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    (median(of_known), median(of_unknown))
}

#[tokio::test]
async fn the_time_of_an_answer_reveals_nothing_about_the_account() {
    let full = std::env::var("CONTROLD_TIMES").ok();
    let count = full.as_ref();
    let count = count.map_or(ACCOUNTS, |text| text.parse().unwrap());
    let rounds = if full.is_some() { 1 } else { ROUNDS };
    for world in worlds().await {
        let mut persons = Vec::new();
        for number in 0..count {
            persons.push(account(&world, number).await);
        }
        let mut found = Vec::new();
        let is_equal = loop {
            let (known, unknown) = medians(&world, &persons).await;
            let ratio = known.as_secs_f64() / unknown.as_secs_f64();
            println!("{count} accounts each: {known:#} known, {unknown:#} unknown");
            found.push((known, unknown));
            let is_equal = (0.9..=1.1).contains(&ratio);
            if is_equal || found.len() == rounds {
                break is_equal;
            }
        };
        assert!(is_equal, "{found:?}");
    }
}
