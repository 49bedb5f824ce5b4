//! How events are dealt out to workers.

use timely::communication::Push;
use timely::dataflow::channels::Message;
use timely::dataflow::channels::pushers::exchange::Distributor;
use timely::progress::Stamp;

/// Events of one container. Timely's own exchange fills 8 KiB, some 200 events; every container
/// costs an allocation, a queue operation and a count, and arrives as a piece of its own.
pub(crate) const CONTAINER_EVENTS: usize = 1024;

/// Deals events out to workers in containers of [`CONTAINER_EVENTS`].
///
/// Does what Timely's `DrainContainerDistributor` does, without asking a builder after each event
/// whether a container is full: half of the cost of an exchange of small events.
pub(crate) struct EventDistributor<T, R> {
    route: R,
    pending: Vec<Vec<T>>,
}

impl<T, R: FnMut(&T) -> usize> EventDistributor<T, R> {
    /// For so many workers; `route` gives an event's worker, below that number.
    pub(crate) fn new(route: R, workers: usize) -> Self {
        EventDistributor { route, pending: std::iter::repeat_with(Vec::new).take(workers).collect() }
    }
}

impl<T, R: FnMut(&T) -> usize> Distributor<Vec<T>> for EventDistributor<T, R> {
    fn partition<S: Clone, P: Push<Message<S, Vec<T>>>>(
        &mut self,
        events: &mut Vec<T>,
        stamp: &Stamp<S>,
        workers: &mut [P],
    ) {
        for event in events.drain(..) {
            let worker = (self.route)(&event);
            let pending = &mut self.pending[worker];
            if pending.capacity() == 0 {
                pending.reserve_exact(CONTAINER_EVENTS);
            }
            pending.push(event);
            if pending.len() >= CONTAINER_EVENTS {
                send(pending, stamp, &mut workers[worker]);
            }
        }
    }

    fn flush<S: Clone, P: Push<Message<S, Vec<T>>>>(&mut self, stamp: &Stamp<S>, workers: &mut [P]) {
        for (pending, worker) in self.pending.iter_mut().zip(workers) {
            if !pending.is_empty() {
                send(pending, stamp, worker);
            }
        }
    }
}

fn send<T, S: Clone, P: Push<Message<S, Vec<T>>>>(pending: &mut Vec<T>, stamp: &Stamp<S>, worker: &mut P) {
    Message::push_at(pending, stamp.clone(), worker);
    // What comes back, if anything, is a used container.
    pending.clear();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_reaches_its_worker_once_and_in_order() {
        let mut distributor = EventDistributor::new(|event: &usize| event % 3, 3);
        let mut received: Vec<Vec<Message<u64, Vec<usize>>>> = vec![Vec::new(), Vec::new(), Vec::new()];
        let stamp = Stamp::from_elem(7u64);
        let count = 5 * CONTAINER_EVENTS + 17;
        {
            let mut workers: Vec<_> = received.iter_mut().map(Collect).collect();
            for start in (0..count).step_by(1000) {
                let mut events: Vec<usize> = (start..count.min(start + 1000)).collect();
                distributor.partition(&mut events, &stamp, &mut workers);
                assert!(events.is_empty());
            }
            distributor.flush(&stamp, &mut workers);
            distributor.flush(&stamp, &mut workers);
        }
        for (worker, messages) in received.iter().enumerate() {
            let events: Vec<usize> = messages.iter().flat_map(|message| message.data.clone()).collect();
            assert_eq!(events, (worker..count).step_by(3).collect::<Vec<_>>());
            assert!(messages.iter().all(|message| message.stamp == stamp && !message.data.is_empty()));
        }
    }

    struct Collect<'a>(&'a mut Vec<Message<u64, Vec<usize>>>);

    impl Push<Message<u64, Vec<usize>>> for Collect<'_> {
        fn push(&mut self, message: &mut Option<Message<u64, Vec<usize>>>) {
            self.0.extend(message.take());
        }
    }
}
