//! The cache: computed once, true, bounded; each promise broken once.
//!
//! Promises: no sleeps; the cache's own clock is not waited for.
//! Does not: go through the whole list (`gate::tests` does).

use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use serde_json::json;
use tokio::sync::Notify;
use tower::service_fn;

use super::*;
use crate::{
    auth::{Caller, Role},
    gate::probe::{FLEETING, HEAVY, LIGHT, call, counting, never, refusing, reply, text, with},
    tools::ToolError,
};

fn cache() -> Arc<Cache> {
    Arc::new(Cache::new(&Bounds::default()))
}

/// Waits until let go, then replies; counts.
fn held(count: &Arc<AtomicUsize>, go: &Arc<Notify>) -> impl Next + use<> {
    let (count, go) = (count.clone(), go.clone());
    service_fn(move |_: Call| {
        let (count, go) = (count.clone(), go.clone());
        async move {
            count.fetch_add(1, SeqCst);
            go.notified().await;
            reply("held")
        }
    })
}

async fn settle() {
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_repeated_call_is_a_hit_and_says_so() {
    let (cache, count) = (cache(), Arc::default());
    let first = cache.clone().take(call(&LIGHT), counting(&count)).await.unwrap();
    let second = cache.clone().take(call(&LIGHT), counting(&count)).await.unwrap();
    assert_eq!((first.cached, second.cached, &*second.answer.text), (false, true, "0"));
    assert_eq!((count.load(SeqCst), cache.hits(), cache.misses(), cache.followers()), (1, 1, 1, 0));
}

#[tokio::test]
async fn sixty_four_identical_calls_at_once_are_computed_once() {
    let (cache, count, go) = (cache(), Arc::default(), Arc::new(Notify::new()));
    let calls: Vec<_> = (0..64).map(|_| tokio::spawn(cache.clone().take(call(&HEAVY), held(&count, &go)))).collect();
    settle().await;
    assert_eq!(count.load(SeqCst), 1);
    go.notify_one();
    let mut cached = 0;
    for call in calls {
        cached += usize::from(call.await.unwrap().unwrap().cached);
    }
    assert_eq!((cached, count.load(SeqCst), cache.misses(), cache.followers()), (63, 1, 1, 63));
}

#[tokio::test]
async fn a_leader_whose_client_leaves_hands_over() {
    let (cache, count, go) = (cache(), Arc::default(), Arc::new(Notify::new()));
    let leader = tokio::spawn(cache.clone().take(call(&HEAVY), never()));
    settle().await;
    let followers: Vec<_> = (0..8).map(|_| tokio::spawn(cache.clone().take(call(&HEAVY), held(&count, &go)))).collect();
    settle().await;
    assert_eq!(count.load(SeqCst), 0);
    leader.abort();
    settle().await;
    assert_eq!(count.load(SeqCst), 1, "one of them leads");
    go.notify_one();
    for follower in followers {
        assert_eq!(follower.await.unwrap().unwrap().answer.text, "held");
    }
}

#[tokio::test]
async fn a_leader_that_panics_hands_over_too() {
    let (cache, count) = (cache(), Arc::default());
    let bad = service_fn(|_: Call| async { panic!("on purpose") as Reply });
    assert!(tokio::spawn(cache.clone().take(call(&HEAVY), bad)).await.is_err());
    assert!(cache.take(call(&HEAVY), counting(&count)).await.is_ok());
}

#[tokio::test]
async fn a_refusal_is_kept_for_nobody_and_shared_by_those_who_waited() {
    let (cache, count) = (cache(), Arc::default());
    let error = || Refusal::Tool(ToolError::NotFound("no run \"x\"".into()));
    for _ in 0..2 {
        let refusal = cache.clone().take(call(&LIGHT), refusing(&count, error())).await.unwrap_err();
        assert_eq!(refusal.to_string(), "no run \"x\"");
    }
    assert_eq!((count.load(SeqCst), cache.entries()), (2, 0));
    assert!(cache.clone().take(call(&LIGHT), counting(&Arc::default())).await.is_ok());
}

/// Refuses after being let go.
fn refused_later(count: &Arc<AtomicUsize>, go: &Arc<Notify>, refusal: Refusal) -> impl Next + use<> {
    let (count, go) = (count.clone(), go.clone());
    service_fn(move |_: Call| {
        let (count, go, refusal) = (count.clone(), go.clone(), refusal.clone());
        async move {
            count.fetch_add(1, SeqCst);
            go.notified().await;
            Err(refusal)
        }
    })
}

#[tokio::test]
async fn what_was_refused_to_the_leader_in_person_is_not_the_followers_answer() {
    let (cache, go) = (cache(), Arc::new(Notify::new()));
    let busy = Refusal::CallerBusy { tool: "heavy", max: 1, heavy: true };
    let leader = tokio::spawn(cache.clone().take(call(&HEAVY), refused_later(&Arc::default(), &go, busy)));
    settle().await;
    let follower = tokio::spawn(cache.clone().take(call(&HEAVY), counting(&Arc::default())));
    settle().await;
    go.notify_one();
    assert!(matches!(leader.await.unwrap(), Err(Refusal::CallerBusy { .. })));
    assert!(!follower.await.unwrap().unwrap().cached, "it led itself");
}

#[tokio::test]
async fn a_follower_of_a_panicked_call_reads_its_own_request_id() {
    let (cache, go, count) = (cache(), Arc::new(Notify::new()), Arc::default());
    let leader = tokio::spawn(cache.clone().take(call(&HEAVY), refused_later(&count, &go, Refusal::Panicked("r1".into()))));
    settle().await;
    let second = Call { request_id: "r2".into(), ..call(&HEAVY) };
    let follower = tokio::spawn(cache.clone().take(second, counting(&count)));
    settle().await;
    go.notify_one();
    assert!(matches!(leader.await.unwrap(), Err(Refusal::Panicked(id)) if id == "r1"));
    assert!(matches!(follower.await.unwrap(), Err(Refusal::Panicked(id)) if id == "r2"));
    assert_eq!(count.load(SeqCst), 1);
}

#[tokio::test]
async fn what_is_not_the_same_question_is_a_miss() {
    let (cache, count) = (cache(), Arc::default());
    let scoped = |role, scopes: &[&str]| Call { caller: Caller::scoped("a", role, scopes), ..call(&LIGHT) };
    let calls = [
        call(&LIGHT),
        call(&HEAVY),
        Call { generation: Some(2), ..call(&LIGHT) },
        with(call(&LIGHT), &json!({"limit": 1})),
        with(call(&LIGHT), &json!({"limit": "1"})),
        scoped(Role::Viewer, &["eval:read", "traces:read"]),
        scoped(Role::Viewer, &[]),
        scoped(Role::Admin, &["eval:read"]),
        Call { caller: Caller::local(), ..call(&LIGHT) },
    ];
    for call in calls.clone() {
        assert!(!cache.clone().take(call, counting(&count)).await.unwrap().cached);
    }
    for call in calls {
        assert!(cache.clone().take(call, counting(&count)).await.unwrap().cached, "and a hit when it is asked again");
    }
    let other = Call { caller: Caller::scoped("another", Role::Viewer, &["eval:read"]), ..call(&LIGHT) };
    assert!(cache.take(other, counting(&count)).await.unwrap().cached, "who asks is not what they may see");
}

#[tokio::test]
async fn what_must_not_be_kept_is_not() {
    let (cache, count) = (cache(), Arc::default());
    let ungenerated = Call { generation: None, ..call(&LIGHT) };
    for call in [call(&FLEETING), ungenerated] {
        for _ in 0..2 {
            assert!(!cache.clone().take(call.clone(), counting(&count)).await.unwrap().cached);
        }
    }
    let passing = service_fn(|_: Call| async { Ok(Served { answer: Arc::new(Answer { lasting: false, ..text("now") }), cached: false }) });
    for _ in 0..2 {
        assert!(!cache.clone().take(call(&LIGHT), passing).await.unwrap().cached);
    }
    assert_eq!((cache.entries(), cache.misses()), (0, 2));
}

#[tokio::test]
async fn the_bound_in_bytes_holds_and_old_generations_make_room() {
    let bounds = Bounds { cache_bytes: 4 * 1024 * 1024, ..Bounds::default() };
    let cache = Arc::new(Cache::new(&bounds));
    let large = || service_fn(|_: Call| async { reply(&"x".repeat(100_000)) });
    for generation in 0..200 {
        let call = Call { generation: Some(generation), ..call(&LIGHT) };
        // Asked for often: by frequency, these would keep the next ones out.
        for _ in 0..3 {
            cache.clone().take(call.clone(), large()).await.unwrap();
        }
        // What is really there, not what the cache has counted: between two tidyings a little more may stand, and the last answer.
        let there: usize = cache.answers.as_ref().unwrap().iter().map(|(key, answer)| weight(&key, &answer)).sum();
        assert!(there as u64 <= bounds.cache_bytes + UNTIDIED_BYTES_MAX + 101_000, "{there}");
    }
    cache.answers.as_ref().unwrap().run_pending_tasks().await;
    assert!(cache.bytes() <= bounds.cache_bytes && cache.entries() >= 30, "{} {}", cache.bytes(), cache.entries());
    let newest = Call { generation: Some(199), ..call(&LIGHT) };
    assert!(cache.clone().take(newest, large()).await.unwrap().cached);
    let hour = cache.answers.as_ref().unwrap().policy().time_to_live();
    assert_eq!(hour, Some(Duration::from_secs(3600)));
}

#[tokio::test]
async fn an_answer_larger_than_the_cache_is_answered_and_not_kept() {
    let cache = Arc::new(Cache::new(&Bounds { cache_bytes: 1000, ..Bounds::default() }));
    let large = service_fn(|_: Call| async { reply(&"x".repeat(2_000_000)) });
    assert_eq!(cache.clone().take(call(&LIGHT), large).await.unwrap().answer.text.len(), 2_000_000);
    assert_eq!(cache.entries(), 0);
}

#[tokio::test]
async fn no_bytes_is_no_cache() {
    let (cache, count) = (Arc::new(Cache::new(&Bounds { cache_bytes: 0, ..Bounds::default() })), Arc::default());
    for _ in 0..2 {
        assert!(!cache.clone().take(call(&LIGHT), counting(&count)).await.unwrap().cached);
    }
}
