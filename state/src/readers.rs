//! Reader threads: batched reads beside the worker, several at a time.
//!
//! One thread's batched read keeps few reads in flight: RocksDB works in groups of 32 keys, one
//! file at a time, and waits for each group. A disk gives its best with more of them on their
//! way, so the keys of a release are split over a few threads, and the worker goes on meanwhile.

use crate::arena::KeyArena;
use crate::backend::{BatchReadError, StateReader};
use crate::error::{BackendError, BackendErrorKind};
use crate::table::ReadAhead;
use std::cell::OnceCell;
use std::panic::AssertUnwindSafe;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Called from a reader thread when an answer is ready.
pub type Waker = Arc<dyn Fn() + Send + Sync>;

/// The values of a batched read, in one piece of memory.
#[derive(Debug, Default)]
pub struct Values {
    bytes: Vec<u8>,
    /// Where each value ends, and whether it is there.
    ends: Vec<(usize, bool)>,
}

impl Values {
    /// Number of answers.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is no answer.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Length of all values together, in bytes.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// The answers, first to last.
    pub fn iter(&self) -> impl Iterator<Item = Option<&[u8]>> {
        self.ends.iter().scan(0, |start, &(end, found)| {
            let value = &self.bytes[*start..end];
            *start = end;
            Some(found.then_some(value))
        })
    }

    fn push(&mut self, value: Option<&[u8]>) {
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.ends.push((self.bytes.len(), value.is_some()));
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// A batched read, on its way to a reader thread and back. It is used again for the next one, so
/// that its memory is.
#[derive(Debug, Default)]
pub struct Read {
    /// The keys, sorted and without repeats.
    pub keys: KeyArena,
    /// What the asker calls each key.
    pub tags: Vec<u32>,
    /// Which of the asker's eras the read belongs to.
    pub era: u32,
    /// The answers, one for each key where the read succeeded.
    pub values: Values,
    /// Why it did not.
    pub failure: Option<BatchReadError>,
    /// How long the read took, without its time in queues.
    pub took: Duration,
}

impl Read {
    /// Forgets keys and answers, and keeps the memory.
    pub fn clear(&mut self) {
        self.keys.clear();
        self.tags.clear();
        self.values.clear();
        self.failure = None;
    }

    fn carry_out(&mut self, reader: &dyn StateReader) {
        self.values.clear();
        let started = Instant::now();
        let values = &mut self.values;
        // A backend that panics must not leave its asker waiting.
        let outcome = std::panic::catch_unwind(AssertUnwindSafe(|| {
            reader.multi_get(&self.keys, &mut |_, value| values.push(value))
        }));
        self.took = started.elapsed();
        self.failure = match outcome {
            Ok(outcome) => outcome.err(),
            Err(_) => Some(own_failure("the reader thread panicked")),
        };
        if self.failure.is_none() && self.values.len() != self.keys.len() {
            self.failure = Some(own_failure("the store did not answer for every key"));
        }
    }
}

fn own_failure(message: &str) -> BatchReadError {
    BatchReadError {
        index: None,
        error: BackendError { kind: BackendErrorKind::Other, message: message.to_string() },
    }
}

struct Job {
    read: Box<Read>,
    reader: Arc<dyn StateReader>,
    reply: Sender<Box<Read>>,
    waker: Option<Waker>,
}

/// How a store is read by other threads than its worker's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaderOptions {
    /// Number of threads; 0 for none.
    pub threads: usize,
    /// Whether rows are read ahead of their release.
    pub ahead: ReadAhead,
    /// A thread is handed so many keys at least.
    pub least_keys: usize,
}

impl Default for ReaderOptions {
    /// No threads.
    fn default() -> Self {
        ReaderOptions { threads: 0, ahead: ReadAhead::Off, least_keys: Self::LEAST_KEYS }
    }
}

impl ReaderOptions {
    /// The way to a thread and back costs about as much as some reads, so fewer keys than this
    /// do not pay.
    pub const LEAST_KEYS: usize = 32;

    /// So many threads, which are worth their way as they are by default.
    pub fn new(threads: usize, ahead: ReadAhead) -> Self {
        ReaderOptions { threads, ahead, ..Self::default() }
    }
}

/// Reader threads of one store. They start with the first read and end with the pool.
pub struct ReaderPool {
    size: usize,
    running: OnceCell<Running>,
}

#[derive(Default)]
struct Running {
    jobs: Option<Sender<Job>>,
    threads: Vec<JoinHandle<()>>,
}

impl ReaderPool {
    /// A pool of so many threads; 0 for none.
    pub fn new(size: usize) -> Self {
        ReaderPool { size, running: OnceCell::new() }
    }

    /// How many threads there are. The first call starts them; a system that has no room for
    /// all of them runs with those that it has room for.
    pub fn threads(&self) -> usize {
        self.running.get_or_init(|| Running::start(self.size)).threads.len()
    }

    /// Hands a read to the threads; it comes back through `reply`, and `waker` is called after
    /// it. Gives the read back where there are no threads.
    pub fn submit(
        &self,
        read: Box<Read>,
        reader: &Arc<dyn StateReader>,
        reply: &Sender<Box<Read>>,
        waker: Option<&Waker>,
    ) -> Result<(), Box<Read>> {
        let running = self.running.get_or_init(|| Running::start(self.size));
        let Some(jobs) = &running.jobs else { return Err(read) };
        let job = Job { read, reader: Arc::clone(reader), reply: reply.clone(), waker: waker.cloned() };
        jobs.send(job).map_err(|unsent| unsent.0.read)
    }
}

impl Running {
    fn start(size: usize) -> Self {
        let (jobs, queue) = mpsc::channel();
        let queue = Arc::new(Mutex::new(queue));
        let mut threads = Vec::new();
        for number in 0..size {
            let queue = Arc::clone(&queue);
            let builder = Builder::new().name(format!("state-reader-{number}"));
            match builder.spawn(move || serve(&queue)) {
                Ok(thread) => threads.push(thread),
                Err(_) => break,
            }
        }
        Running { jobs: (!threads.is_empty()).then_some(jobs), threads }
    }
}

fn serve(queue: &Mutex<Receiver<Job>>) {
    loop {
        // One thread waits at the queue, the others for its lock: each job wakes one.
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { mut read, reader, reply, waker }) = job else { return };
        read.carry_out(&*reader);
        // The database must be free before the answer is: who gets it may close the store.
        drop(reader);
        // An asker that is gone wants no answer.
        if reply.send(read).is_ok()
            && let Some(waker) = waker
        {
            waker();
        }
    }
}

impl Drop for ReaderPool {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            drop(running.jobs);
            for thread in running.threads {
                // What it had to say about a panic it has said in its answer.
                let _ = thread.join();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Answers each key with itself, but for some.
    struct Echo;

    impl StateReader for Echo {
        fn multi_get(
            &self,
            keys: &KeyArena,
            visit: &mut dyn FnMut(usize, Option<&[u8]>),
        ) -> Result<(), BatchReadError> {
            for (index, key) in keys.iter().enumerate() {
                assert_ne!(key, b"panic");
                visit(index, (key != b"absent").then_some(key));
            }
            Ok(())
        }
    }

    fn read(keys: &[&[u8]]) -> Box<Read> {
        let mut read = Box::<Read>::default();
        keys.iter().for_each(|key| read.keys.push(key));
        read
    }

    #[test]
    fn answers_come_back_with_their_questions() {
        let pool = ReaderPool::new(3);
        let (reply, answers) = mpsc::channel();
        let echo: Arc<dyn StateReader> = Arc::new(Echo);
        for number in 0..50u8 {
            let mut read = read(&[&[number], b"", b"absent"]);
            read.era = u32::from(number);
            pool.submit(read, &echo, &reply, None).unwrap();
        }
        let mut eras: Vec<_> = (0..50)
            .map(|_| {
                let answer = answers.recv().unwrap();
                let own = [answer.era as u8];
                let expected = [Some(&own[..]), Some(b""), None];
                assert!(answer.failure.is_none() && answer.values.iter().eq(expected));
                answer.era
            })
            .collect();
        eras.sort_unstable();
        assert!(eras.into_iter().eq(0..50));
    }

    #[test]
    fn a_panic_is_an_answer_and_the_thread_goes_on() {
        let pool = ReaderPool::new(1);
        let (reply, answers) = mpsc::channel();
        let echo: Arc<dyn StateReader> = Arc::new(Echo);
        pool.submit(read(&[b"panic"]), &echo, &reply, None).unwrap();
        pool.submit(read(&[b"a"]), &echo, &reply, None).unwrap();
        assert!(answers.recv().unwrap().failure.is_some());
        assert!(answers.recv().unwrap().failure.is_none());
    }

    #[test]
    fn a_pool_of_none_gives_the_read_back() {
        let (reply, _answers) = mpsc::channel();
        let echo: Arc<dyn StateReader> = Arc::new(Echo);
        assert!(ReaderPool::new(0).submit(read(&[b"a"]), &echo, &reply, None).is_err());
    }
}
