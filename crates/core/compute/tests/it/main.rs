//! Tests which work runs and which waits. Running work is blocked by signals, never by time.

#![allow(clippy::unwrap_used)]

use std::sync::Arc;
use std::sync::mpsc;

use rcrt_compute::{ComputeError, Pool};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

/// Work that signals its start and blocks until the test releases it.
fn held() -> (oneshot::Receiver<()>, mpsc::Sender<()>, impl FnOnce() + Send + 'static) {
    let (began, has_begun) = oneshot::channel();
    let (end, ends) = mpsc::channel();
    let work = move || {
        began.send(()).unwrap();
        ends.recv().unwrap();
    };
    (has_begun, end, work)
}

#[tokio::test]
async fn a_tenant_that_fills_its_share_does_not_delay_others() {
    let pool = Arc::new(Pool::new(3));
    let (busy, other) = (Uuid::new_v4(), Uuid::new_v4());
    let (mut running, mut ends) = (Vec::new(), Vec::new());
    for _ in 0..2 {
        let (begun, end, work) = held();
        let pool = pool.clone();
        running.push(tokio::spawn(async move { pool.run(busy, work).await }));
        begun.await.unwrap();
        ends.push(end);
    }
    // Its queue is long.
    for _ in 0..10 {
        let pool = pool.clone();
        running.push(tokio::spawn(async move { pool.run(busy, || ()).await }));
    }
    while pool.waiting(busy) < 10 {
        tokio::task::yield_now().await;
    }
    // In a full queue, work with a deadline is refused at once.
    let much_later = Instant::now() + std::time::Duration::from_hours(1);
    for _ in 10..256 {
        let pool = pool.clone();
        running.push(tokio::spawn(async move { pool.run(busy, || ()).await }));
    }
    while pool.waiting(busy) < 256 {
        tokio::task::yield_now().await;
    }
    assert_eq!(pool.run_until(busy, much_later, || 1).await, Err(ComputeError::QueueFull));
    assert_eq!(pool.run(busy, || 1).now(), None);
    assert_eq!((pool.waiting(busy), pool.waiting(other)), (256, 0));
    assert_eq!(pool.run_until(other, much_later, || 2).await, Ok(2));
    for end in ends {
        end.send(()).unwrap();
    }
    for run in running {
        run.await.unwrap().unwrap();
    }
    assert_eq!(pool.run(busy, || 3).await, Ok(3));
}

#[tokio::test]
async fn work_keeps_its_thread_past_its_deadline_until_it_finishes() {
    let pool = Pool::new(2);
    let tenant = Uuid::new_v4();
    let (begun, end, work) = held();
    let run = async { pool.run_until(tenant, Instant::now() + std::time::Duration::from_millis(1), work).await };
    assert_eq!(run.await, Err(ComputeError::DeadlineExceeded));
    // It never starts if its deadline passes first.
    if begun.await.is_ok() {
        assert_eq!(pool.run(tenant, || ()).now(), None);
        end.send(()).unwrap();
    }
    assert_eq!(pool.run(tenant, || 1).await, Ok(1));
}

#[tokio::test]
async fn a_panic_releases_the_thread() {
    let pool = Pool::new(2);
    let tenant = Uuid::new_v4();
    assert_eq!(pool.run(tenant, || panic!("on purpose")).await, Err::<(), _>(ComputeError::Panicked));
    assert_eq!(pool.run(tenant, || 1).await, Ok(1));
}

trait Now: Future + Sized {
    /// The output, if it is ready without waiting.
    fn now(self) -> Option<Self::Output> {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(self).poll(&mut context) {
            std::task::Poll::Ready(output) => Some(output),
            std::task::Poll::Pending => None,
        }
    }
}

impl<F: Future> Now for F {}
