//! In the steady state the engine allocates nothing for a record: measured with an allocator that
//! counts.

use std::alloc::{GlobalAlloc, Layout, System};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use tidegate_operators::aggregate;
use tidegate_operators::event::Event;
use tidegate_operators::fold::Fold;
use tidegate_operators::frontier::Frontier;
use tidegate_operators::keyed::Keyed;
use tidegate_operators::policy::BatchPolicy;
use tidegate_state::backend::StateName;
use tidegate_state::group::KeyGroups;
use tidegate_state::memory::MemoryBackend;
use tidegate_state::store::Store;
use tidegate_state::strategy::ReadStrategy;

/// The system's allocator, counting.
struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

// An allocator can be written in no other way. Each call goes to the system's allocator with the
// arguments that were given, so whatever it requires of its callers, ours have kept.
#[allow(unsafe_code)]
// SAFETY: see above.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `GlobalAlloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const RECORDS_PER_RELEASE: u64 = 10_000;
const KEYS: u64 = 3_000;

/// Allocations in one release of a running count.
fn release(
    keyed: &mut Keyed<impl tidegate_operators::logic::Logic<Key = u64, Input = ()>>,
    number: u64,
) -> u64 {
    let before = ALLOCATIONS.load(Ordering::Relaxed);
    let mut results = 0;
    for position in number * RECORDS_PER_RELEASE..(number + 1) * RECORDS_PER_RELEASE {
        // Out of order within the release, and every fourth record waits for the next one.
        let time = (position ^ 0x2A) as i64 + if position % 4 == 0 { RECORDS_PER_RELEASE as i64 } else { 0 };
        let key = position.wrapping_mul(0x9E37_79B9_7F4A_7C15) % KEYS;
        assert!(keyed.accept(Event::new(time, 0, position, (key, ()))).is_none());
    }
    let frontier = ((number + 1) * RECORDS_PER_RELEASE) as i64;
    keyed
        .advance(Frontier::At(frontier), |events| {
            results += events.len();
            events.clear();
        })
        .unwrap();
    assert!(results > 0);
    ALLOCATIONS.load(Ordering::Relaxed) - before
}

#[test]
fn a_record_costs_no_allocation() {
    for strategy in ReadStrategy::ALL {
        for keys_per_chunk in [500, 100_000] {
            let store = Rc::new(Store::new(MemoryBackend::new(), KeyGroups::default()));
            let name = StateName::new("count", "value").unwrap();
            let fold = Fold::open(&store, &name, strategy, u64::default, aggregate::count).unwrap();
            let mut keyed = Keyed::new(fold, store, strategy, BatchPolicy { keys_per_chunk });
            // The first releases make room; later ones find it.
            let counts: Vec<u64> = (0..30).map(|number| release(&mut keyed, number)).collect();
            let steady: u64 = counts[10..].iter().sum();
            let per_record = steady as f64 / (20 * RECORDS_PER_RELEASE) as f64;
            println!("{strategy}, {keys_per_chunk} keys a chunk: {per_record:.5} allocations a record");
            assert!(per_record < 0.005, "{strategy}, {keys_per_chunk} keys a chunk: {counts:?}");
        }
    }
}
