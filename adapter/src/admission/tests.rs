use super::{Admission, AdmissionError};
use crate::config::AdmissionConfig;
use crate::telemetry::Metrics;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn admission(max_concurrent: usize, max_queued: usize, timeout: Duration) -> (Arc<Admission>, Arc<Metrics>) {
    let metrics = Arc::new(Metrics::default());
    let config = AdmissionConfig {
        max_concurrent,
        max_queued,
        timeout,
        retry_after_seconds: 5,
        scratch_mebibytes: 100,
        memory_bytes: 100,
        memory_of_a_run_bytes: 10,
    };
    (Arc::new(Admission::new(config, Arc::clone(&metrics))), metrics)
}

#[tokio::test]
async fn slots_scratch_and_queue_bound_what_runs() {
    let (admission, metrics) = admission(2, 1, Duration::ZERO);
    let cancel = CancellationToken::new();
    let first = admission.admit(60, &cancel).await.unwrap();
    assert_eq!(
        admission.admit(60, &cancel).await.unwrap_err(),
        AdmissionError::TimedOut
    );
    let second = admission.admit(40, &cancel).await.unwrap();
    assert_eq!(metrics.active.get(), 2);
    assert_eq!(metrics.scratch_reserved_bytes.get(), 100 << 20);
    assert_eq!(
        admission.admit(1, &cancel).await.unwrap_err(),
        AdmissionError::TimedOut
    );
    drop((first, second));
    assert_eq!(
        (
            metrics.active.get(),
            metrics.queued.get(),
            metrics.scratch_reserved_bytes.get()
        ),
        (0, 0, 0)
    );
    assert_eq!(metrics.admission_rejected.get(), 2);
    admission.admit(100, &cancel).await.unwrap();
}

#[tokio::test]
async fn what_can_never_fit_is_refused_at_once() {
    let (admission, _) = admission(1, 0, Duration::from_mins(1));
    let error = admission.admit(101, &CancellationToken::new()).await.unwrap_err();
    assert_eq!(
        error,
        AdmissionError::ScratchTooLarge {
            needed: 101,
            budget: 100
        }
    );
}

#[tokio::test]
async fn a_waiting_run_can_be_cancelled_and_a_full_queue_refuses() {
    let (admission, metrics) = admission(1, 1, Duration::from_mins(1));
    let running = admission.admit(1, &CancellationToken::new()).await.unwrap();
    let cancel = CancellationToken::new();
    let waiter = tokio::spawn({
        let (admission, cancel) = (Arc::clone(&admission), cancel.clone());
        async move { admission.admit(1, &cancel).await.map(|_| ()) }
    });
    while metrics.queued.get() == 0 {
        tokio::task::yield_now().await;
    }
    assert_eq!(
        admission.admit(1, &CancellationToken::new()).await.unwrap_err(),
        AdmissionError::QueueFull
    );
    cancel.cancel();
    assert_eq!(waiter.await.unwrap(), Err(AdmissionError::Cancelled));
    drop(running);
    assert_eq!((metrics.active.get(), metrics.queued.get()), (0, 0));
}

/// What nobody holds any more.
fn assert_all_free(metrics: &Metrics) {
    let held = [
        metrics.active.get(),
        metrics.queued.get(),
        metrics.scratch_reserved_bytes.get(),
        metrics.answer_memory_reserved_bytes.get(),
    ];
    assert_eq!(held, [0; 4]);
    assert_eq!(metrics.runs_started.get(), metrics.runs_ended.get());
}

#[tokio::test]
async fn a_permit_for_one_who_just_gave_up_goes_to_the_next() {
    let (admission, metrics) = admission(1, 9, Duration::from_mins(1));
    let cancel = CancellationToken::new();
    let running = admission.admit(1, &cancel).await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut gives_up = Box::pin(admission.admit(1, &cancel));
    let mut next = Box::pin(admission.admit(2, &cancel));
    assert!(gives_up.as_mut().poll(&mut context).is_pending());
    assert!(next.as_mut().poll(&mut context).is_pending());
    // The permit is on its way to the first, which never looks again.
    drop(running);
    assert!(next.as_mut().poll(&mut context).is_pending());
    drop(gives_up);
    let Poll::Ready(Ok(permit)) = next.as_mut().poll(&mut context) else {
        panic!("nobody got it");
    };
    assert_eq!(metrics.scratch_reserved_bytes.get(), 2 << 20);
    drop(permit);
    assert_all_free(&metrics);
    assert_eq!(metrics.runs_started.get(), 2, "the first never began");
}

#[tokio::test]
async fn memory_outlives_the_slot_for_as_long_as_the_answer_does() {
    let (admission, metrics) = admission(1, 0, Duration::ZERO);
    let cancel = CancellationToken::new();
    let mut answers = Vec::new();
    for _ in 0..10 {
        let mut permit = admission.admit(100, &cancel).await.unwrap();
        answers.push(permit.split_memory());
    }
    // All of it is in answers that nobody reads.
    assert_eq!(
        admission.admit(1, &cancel).await.unwrap_err(),
        AdmissionError::TimedOut
    );
    for answer in &mut answers {
        answer.keep_memory(9);
    }
    assert_eq!(metrics.answer_memory_reserved_bytes.get(), 90);
    drop(admission.admit(1, &cancel).await.unwrap());
    drop(answers);
    assert_all_free(&metrics);
}

#[tokio::test]
async fn a_large_one_that_waits_leaves_no_slot_idle() {
    let (admission, metrics) = admission(2, 9, Duration::from_mins(1));
    let cancel = CancellationToken::new();
    let first = admission.admit(60, &cancel).await.unwrap();
    let mut context = Context::from_waker(Waker::noop());
    let mut large = Box::pin(admission.admit(100, &cancel));
    assert!(large.as_mut().poll(&mut context).is_pending());
    let second = admission.admit(10, &cancel).await.unwrap();
    assert_eq!(metrics.active.get(), 2);
    drop((first, second));
    large.await.unwrap();
    assert_all_free(&metrics);
}

/// Arrivals, grants, timeouts, cancellations, futures that are dropped, and panics, on several threads.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn nothing_is_lost_or_given_twice_whatever_happens() {
    const CLIENTS: u64 = 400;
    let (admission, metrics) = admission(3, 50, Duration::from_millis(20));
    let in_use = Arc::new([AtomicU64::new(0), AtomicU64::new(0)]);
    let clients: Vec<_> = (0..CLIENTS)
        .map(|seed| {
            let (admission, in_use) = (Arc::clone(&admission), Arc::clone(&in_use));
            tokio::spawn(async move {
                let mut random = fastrand::Rng::with_seed(seed);
                let (scratch, behaviour) = (random.u64(0..=100), random.u8(0..6));
                let pause = Duration::from_micros(random.u64(0..3000));
                tokio::time::sleep(Duration::from_micros(random.u64(0..150_000))).await;
                let cancel = CancellationToken::new();
                if behaviour == 0 {
                    let cancel = cancel.clone();
                    tokio::spawn(async move {
                        tokio::time::sleep(pause).await;
                        cancel.cancel();
                    });
                }
                let admitted = if behaviour == 1 {
                    // The client's connection is gone: nobody polls any more.
                    tokio::time::timeout(pause, admission.admit(scratch, &cancel)).await
                } else {
                    Ok(admission.admit(scratch, &cancel).await)
                };
                let Ok(Ok(permit)) = admitted else { return false };
                let slots = in_use[0].fetch_add(1, Ordering::SeqCst) + 1;
                let bytes = in_use[1].fetch_add(scratch, Ordering::SeqCst) + scratch;
                let over = slots > 3 || bytes > 100;
                tokio::time::sleep(pause).await;
                in_use[0].fetch_sub(1, Ordering::SeqCst);
                in_use[1].fetch_sub(scratch, Ordering::SeqCst);
                assert!(!over, "{slots} slots, {bytes} MiB");
                if behaviour == 2 {
                    // A panic without the noise of one.
                    std::panic::resume_unwind(Box::new("on purpose"));
                }
                drop(permit);
                true
            })
        })
        .collect();
    let mut ended_well = 0;
    for client in clients {
        match client.await {
            Ok(well) => ended_well += u32::from(well),
            Err(error) => {
                let panic = error.into_panic();
                assert_eq!(panic.downcast_ref::<&str>(), Some(&"on purpose"));
            }
        }
    }
    assert!(ended_well > 20, "{ended_well}");
    assert_all_free(&metrics);
    let all = admission.admit(100, &CancellationToken::new()).await;
    assert!(all.is_ok(), "everything is there again");
}
