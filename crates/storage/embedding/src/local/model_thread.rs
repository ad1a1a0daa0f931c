//! A thread that runs the model, and its queue of jobs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rcrt_breadcrumb::{EmbedError, EmbedPriority};
use tokio::sync::{mpsc, oneshot};

use super::model::Model;

/// Capacity of the job queue. Further callers wait for a free entry.
const WAITING: usize = 16;

type Vectors = Result<Vec<Vec<f32>>, EmbedError>;

struct EmbedJob {
    texts: Vec<String>,
    answer: oneshot::Sender<Vectors>,
}

/// Stops its thread when dropped. That takes some milliseconds: the current layer is finished
/// first.
#[derive(Debug)]
pub(super) struct ModelThread {
    jobs: Option<mpsc::Sender<EmbedJob>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl ModelThread {
    pub(super) fn start(model: Arc<Model>, priority: EmbedPriority) -> std::io::Result<Self> {
        let (jobs, mut waiting) = mpsc::channel::<EmbedJob>(WAITING);
        let stop = Arc::new(AtomicBool::new(false));
        let is_over = stop.clone();
        let (name, nice) = match priority {
            EmbedPriority::Search => ("embed-search", 0),
            EmbedPriority::Records => ("embed-records", 10),
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            lower_thread_priority(nice);
            while let Some(EmbedJob { texts, answer }) = waiting.blocking_recv() {
                let is_given_up = || answer.is_closed() || is_over.load(Ordering::Relaxed);
                if let Some(vectors) = compute(&model, &texts, &is_given_up) {
                    // The caller may have been cancelled.
                    let _ = answer.send(vectors);
                }
            }
        })?;
        Ok(Self { jobs: Some(jobs), stop, thread: Some(thread) })
    }

    pub(super) async fn embed(&self, texts: Vec<String>) -> Vectors {
        let over = || EmbedError::Unavailable("the model's thread has stopped".to_owned());
        let (answer, vectors) = oneshot::channel();
        let jobs = self.jobs.as_ref().ok_or_else(over)?;
        jobs.send(EmbedJob { texts, answer }).await.map_err(|_| over())?;
        vectors.await.map_err(|_| over())?
    }
}

impl Drop for ModelThread {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // The panic hook has already reported a panic.
            let _ = thread.join();
        }
    }
}

/// Returns `None` if the computation was cancelled.
fn compute(model: &Model, texts: &[String], is_given_up: &dyn Fn() -> bool) -> Option<Vectors> {
    let mut vectors = Vec::with_capacity(texts.len());
    for text in texts {
        match model.embed(text, is_given_up) {
            Ok(Some(vector)) => vectors.push(vector),
            Ok(None) => return None,
            Err(error) => return Some(Err(EmbedError::Unavailable(format!("the model {error}")))),
        }
    }
    Some(Ok(vectors))
}

/// Lowers the thread's priority. Only on Linux: elsewhere it would apply to the whole process.
fn lower_thread_priority(by: i32) {
    #[cfg(target_os = "linux")]
    if by > 0 {
        // Best effort: the lower priority is not needed for correctness.
        let _ = rustix::process::nice(by);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = by;
}
