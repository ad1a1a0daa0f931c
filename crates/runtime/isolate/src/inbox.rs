//! What the parent sends. One thread at a time reads it: the isolate's own between calls, so that a
//! call wakes only that thread; the reader while a call waits for replies or runs for longer, so
//! that replies arrive and the parent can end the call while its code loops.

use std::io::BufReader;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use bytes::Bytes;
use rcrt_sandbox::protocol::{FrameError, Kind, StartMarker, decode, read_frame};
use tokio::sync::{Notify, mpsc};

use crate::call::Work;
use crate::isolate_fork;
use crate::link::Link;
use crate::serve::exit;
use crate::stop::Stop;
use crate::{WorkerError, link};

/// Read buffer size, in bytes.
const READ_AT_ONCE: usize = 16 * 1024;

/// Which thread reads.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Holder {
    /// A call runs, and nothing has to be read for it so far.
    #[default]
    Nobody,
    Isolate,
    /// Until the next call.
    Reader,
}

/// Whose turn it is to read.
#[derive(Clone, Default)]
pub struct Turn(Arc<TurnState>);

#[derive(Default)]
struct TurnState {
    holder: Mutex<Holder>,
    given: Condvar,
    /// The last call waited for replies, and the next one probably will.
    has_asked: AtomicBool,
}

impl Turn {
    fn held(&self) -> MutexGuard<'_, Holder> {
        link::held(&self.0.holder)
    }

    /// The running call asks for something.
    pub fn expect_reply(&self) {
        self.0.has_asked.store(true, Ordering::Relaxed);
        self.hand_over();
    }

    /// Makes the reader read, unless a thread reads already.
    pub fn hand_over(&self) {
        let mut holder = self.held();
        if *holder == Holder::Nobody {
            *holder = Holder::Reader;
            self.0.given.notify_one();
        }
    }

    fn wait_as_reader(&self) {
        let waits = |holder: &mut Holder| *holder != Holder::Reader;
        drop(self.0.given.wait_while(self.held(), waits).unwrap_or_else(PoisonError::into_inner));
    }
}

/// The isolate's end.
pub struct Inbox {
    turn: Turn,
    frames: Arc<Mutex<Frames>>,
    /// Calls that the reader has read.
    calls: mpsc::Receiver<Work>,
}

impl Inbox {
    /// Starts the reader, which waits for its turn.
    pub fn open(frames: Frames) -> Result<Self, WorkerError> {
        let (read, calls) = mpsc::channel(2);
        let turn = frames.link.turn().clone();
        let frames = Arc::new(Mutex::new(frames));
        let reader = Reader { turn: turn.clone(), frames: frames.clone(), calls: read };
        thread::Builder::new().name("reader".into()).spawn(move || reader.run()).map_err(WorkerError::Threads)?;
        Ok(Self { turn, frames, calls })
    }

    /// The next call. Blocks the thread, unless the reader reads it: between calls nothing else is
    /// to be done here.
    pub async fn next(&mut self) -> Option<Work> {
        match self.take_read() {
            Ok(work) => Some(work),
            Err(Holder::Reader) => self.calls.recv().await,
            Err(_) => {
                let work = link::held(&self.frames).next_call();
                self.turn.0.has_asked.store(false, Ordering::Relaxed);
                *self.turn.held() = Holder::Nobody;
                Some(work)
            }
        }
    }

    /// A call that the reader has read, or which thread reads the next one: this one, unless the
    /// reader does.
    fn take_read(&mut self) -> Result<Work, Holder> {
        // The reader passes a call on and ends its turn under the same lock.
        let mut holder = self.turn.held();
        self.calls.try_recv().map_err(|_| {
            if *holder == Holder::Nobody {
                *holder = Holder::Isolate;
            }
            *holder
        })
    }

    /// Makes the reader read the next call, while this thread also waits for something else.
    pub fn read_beside(&self) {
        self.turn.hand_over();
    }
}

/// The thread that reads while the isolate's thread cannot.
struct Reader {
    turn: Turn,
    frames: Arc<Mutex<Frames>>,
    calls: mpsc::Sender<Work>,
}

impl Reader {
    fn run(self) -> ! {
        loop {
            self.turn.wait_as_reader();
            let work = link::held(&self.frames).next_call();
            let mut holder = self.turn.held();
            if self.calls.try_send(work).is_err() {
                isolate_fork::leave(0);
            }
            if !self.turn.0.has_asked.swap(false, Ordering::Relaxed) {
                *holder = Holder::Nobody;
            }
        }
    }
}

/// The frames on the socket.
pub struct Frames {
    socket: BufReader<UnixStream>,
    link: Link,
    stop: Stop,
    /// Set if another process used the socket before: everything before the mark was for that one.
    pub mark: Option<StartMarker>,
    /// The engine's code cache for the next call.
    cache: Option<Bytes>,
    is_spent: bool,
    /// Notified when the isolate is not needed any more.
    pub spent: Arc<Notify>,
    /// Exit status when the socket closes.
    pub closed: i32,
}

impl Frames {
    pub fn new(socket: UnixStream, link: Link, stop: Stop) -> Self {
        Self {
            socket: BufReader::with_capacity(READ_AT_ONCE, socket),
            link,
            stop,
            mark: None,
            cache: None,
            is_spent: false,
            spent: Arc::default(),
            closed: 0,
        }
    }

    /// Reads until the next call. When the socket closes, the process exits at once with the status
    /// `closed`: the result has no receiver. No waiting, no unwinding of the engine.
    fn next_call(&mut self) -> Work {
        match self.read() {
            Ok(Some(work)) => work,
            Ok(None) => exit(&Ok(()), self.closed),
            Err(error) => exit(&Err(error), self.closed),
        }
    }

    fn read(&mut self) -> Result<Option<Work>, WorkerError> {
        if let Some(mark) = self.mark.take()
            && !mark.skip_to(&mut self.socket).map_err(FrameError::Io)?
        {
            return Ok(None);
        }
        while let Some(frame) = read_frame(&mut self.socket)? {
            match frame.kind {
                Kind::CodeCache => self.cache = Some(frame.payload),
                Kind::Call => {
                    let start = decode(&frame.payload)?;
                    return Ok(Some(Work { call: frame.call, start, cache: self.cache.take() }));
                }
                Kind::Cancel => self.stop.tell(frame.call),
                Kind::Spent if self.is_spent => isolate_fork::leave(isolate_fork::DONE),
                Kind::Spent => {
                    self.is_spent = true;
                    self.spent.notify_one();
                }
                _ => self.link.deliver(frame)?,
            }
        }
        Ok(None)
    }
}
