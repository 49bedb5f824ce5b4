//! What is made of the records of a window.

use crate::aggregate::Moments;
use crate::event::Time;
use serde::{Deserialize, Serialize};
use std::ops::AddAssign;
use tidegate_state::codec::StateValue;

/// An incremental aggregate of values of type `V`: records are added to accumulators, and accumulators merged.
///
/// # Contract
///
/// Records of a key are added in the order of (time, rank), but for those that came late: they
/// follow when the window closes. Accumulators are merged in the order of their times. So the
/// order is a property of the input, and an aggregate need not be associative to the last bit.
pub trait Aggregate<V>: 'static {
    /// What is kept in state.
    type Accumulator: StateValue;
    /// What comes out.
    type Output;

    /// The accumulator of no record.
    fn create(&self) -> Self::Accumulator;

    /// Adds a record.
    fn add(&self, accumulator: &mut Self::Accumulator, time: Time, value: V);

    /// Adds what a later accumulator holds.
    fn merge(&self, accumulator: &mut Self::Accumulator, later: &Self::Accumulator);

    /// The result of what was added.
    fn result(&self, accumulator: &Self::Accumulator) -> Self::Output;
}

/// The number of records.
#[derive(Debug, Clone, Copy)]
pub struct Count;

/// The sum of values.
#[derive(Debug, Clone, Copy)]
pub struct Sum;

/// The least value; the first of those that are equal.
#[derive(Debug, Clone, Copy)]
pub struct Min;

/// The largest value; the first of those that are equal.
#[derive(Debug, Clone, Copy)]
pub struct Max;

/// The mean of numbers.
#[derive(Debug, Clone, Copy)]
pub struct Mean;

/// The value of the record with the least time; of equal ones, the first.
#[derive(Debug, Clone, Copy)]
pub struct First;

/// The value of the record with the largest time; of equal ones, the last.
#[derive(Debug, Clone, Copy)]
pub struct Last;

/// All values, in the order of their records' times.
#[derive(Debug, Clone, Copy)]
pub struct Collect;

impl<V: 'static> Aggregate<V> for Count {
    type Accumulator = u64;
    type Output = u64;

    fn create(&self) -> u64 {
        0
    }
    fn add(&self, count: &mut u64, _: Time, _: V) {
        *count += 1;
    }
    fn merge(&self, count: &mut u64, later: &u64) {
        *count += later;
    }
    fn result(&self, count: &u64) -> u64 {
        *count
    }
}

impl<V: StateValue + AddAssign + Default + Clone> Aggregate<V> for Sum {
    type Accumulator = V;
    type Output = V;

    fn create(&self) -> V {
        V::default()
    }
    fn add(&self, sum: &mut V, _: Time, value: V) {
        *sum += value;
    }
    fn merge(&self, sum: &mut V, later: &V) {
        *sum += later.clone();
    }
    fn result(&self, sum: &V) -> V {
        sum.clone()
    }
}

/// Keeps `value` where there is nothing yet, or where it is `better` than what there is.
fn keep<V>(kept: &mut Option<V>, value: V, better: impl FnOnce(&V, &V) -> bool) {
    if kept.as_ref().is_none_or(|kept| better(&value, kept)) {
        *kept = Some(value);
    }
}

impl<V: StateValue + PartialOrd + Clone> Aggregate<V> for Min {
    type Accumulator = Option<V>;
    type Output = Option<V>;

    fn create(&self) -> Option<V> {
        None
    }
    fn add(&self, least: &mut Option<V>, _: Time, value: V) {
        keep(least, value, |value, least| value < least);
    }
    fn merge(&self, least: &mut Option<V>, later: &Option<V>) {
        if let Some(later) = later {
            keep(least, later.clone(), |value, least| value < least);
        }
    }
    fn result(&self, least: &Option<V>) -> Option<V> {
        least.clone()
    }
}

impl<V: StateValue + PartialOrd + Clone> Aggregate<V> for Max {
    type Accumulator = Option<V>;
    type Output = Option<V>;

    fn create(&self) -> Option<V> {
        None
    }
    fn add(&self, largest: &mut Option<V>, _: Time, value: V) {
        keep(largest, value, |value, largest| value > largest);
    }
    fn merge(&self, largest: &mut Option<V>, later: &Option<V>) {
        if let Some(later) = later {
            keep(largest, later.clone(), |value, largest| value > largest);
        }
    }
    fn result(&self, largest: &Option<V>) -> Option<V> {
        largest.clone()
    }
}

impl<V: Into<f64> + 'static> Aggregate<V> for Mean {
    type Accumulator = Moments;
    type Output = f64;

    fn create(&self) -> Moments {
        Moments::default()
    }
    fn add(&self, moments: &mut Moments, _: Time, value: V) {
        moments.add(value.into());
    }
    fn merge(&self, moments: &mut Moments, later: &Moments) {
        moments.merge(later);
    }
    fn result(&self, moments: &Moments) -> f64 {
        moments.mean()
    }
}

/// A value with its record's time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed<V> {
    time: Time,
    value: V,
}

impl<V: StateValue + Clone> Aggregate<V> for First {
    type Accumulator = Option<Timed<V>>;
    type Output = Option<V>;

    fn create(&self) -> Option<Timed<V>> {
        None
    }
    fn add(&self, first: &mut Option<Timed<V>>, time: Time, value: V) {
        keep(first, Timed { time, value }, |new, first| new.time < first.time);
    }
    fn merge(&self, first: &mut Option<Timed<V>>, later: &Option<Timed<V>>) {
        if let Some(later) = later {
            keep(first, later.clone(), |new, first| new.time < first.time);
        }
    }
    fn result(&self, first: &Option<Timed<V>>) -> Option<V> {
        first.as_ref().map(|first| first.value.clone())
    }
}

impl<V: StateValue + Clone> Aggregate<V> for Last {
    type Accumulator = Option<Timed<V>>;
    type Output = Option<V>;

    fn create(&self) -> Option<Timed<V>> {
        None
    }
    fn add(&self, last: &mut Option<Timed<V>>, time: Time, value: V) {
        keep(last, Timed { time, value }, |new, last| new.time >= last.time);
    }
    fn merge(&self, last: &mut Option<Timed<V>>, later: &Option<Timed<V>>) {
        if let Some(later) = later {
            keep(last, later.clone(), |new, last| new.time >= last.time);
        }
    }
    fn result(&self, last: &Option<Timed<V>>) -> Option<V> {
        last.as_ref().map(|last| last.value.clone())
    }
}

impl<V: StateValue + Clone> Aggregate<V> for Collect {
    type Accumulator = Vec<Timed<V>>;
    type Output = Vec<V>;

    fn create(&self) -> Vec<Timed<V>> {
        Vec::new()
    }
    fn add(&self, all: &mut Vec<Timed<V>>, time: Time, value: V) {
        let place = all.partition_point(|earlier| earlier.time <= time);
        all.insert(place, Timed { time, value });
    }
    fn merge(&self, all: &mut Vec<Timed<V>>, later: &Vec<Timed<V>>) {
        for Timed { time, value } in later.clone() {
            self.add(all, time, value);
        }
    }
    fn result(&self, all: &Vec<Timed<V>>) -> Vec<V> {
        all.iter().map(|timed| timed.value.clone()).collect()
    }
}

/// Two aggregates of the same records.
impl<V: Clone, A: Aggregate<V>, B: Aggregate<V>> Aggregate<V> for (A, B) {
    type Accumulator = (A::Accumulator, B::Accumulator);
    type Output = (A::Output, B::Output);

    fn create(&self) -> Self::Accumulator {
        (self.0.create(), self.1.create())
    }
    fn add(&self, (first, second): &mut Self::Accumulator, time: Time, value: V) {
        self.0.add(first, time, value.clone());
        self.1.add(second, time, value);
    }
    fn merge(&self, (first, second): &mut Self::Accumulator, later: &Self::Accumulator) {
        self.0.merge(first, &later.0);
        self.1.merge(second, &later.1);
    }
    fn result(&self, (first, second): &Self::Accumulator) -> Self::Output {
        (self.0.result(first), self.1.result(second))
    }
}
