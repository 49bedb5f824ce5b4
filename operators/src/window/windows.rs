//! Which windows a time belongs to.

use crate::event::Time;
use thiserror::Error;

/// Windows of a fixed length whose starts lie a fixed distance apart.
///
/// Starts are at whole multiples of the slide, counted from the offset, below 0 as well; a window
/// is `[start, start + size)`. Sliding windows share **slices**: a window's start or end is a
/// border between two slices, so that every slice lies in a window whole or not at all. There are
/// at most two slices for each slide (J. Li et al., "No pane, no gain", SIGMOD Record 34 (2005),
/// with the borders of S. Krishnamurthy et al., "On-the-fly sharing for streamed aggregation",
/// SIGMOD 2006).
///
/// ```
/// use tidegate_operators::window::Windows;
/// let windows = Windows::sliding(10, 4)?;
/// assert_eq!(windows.starts_of(9).collect::<Vec<_>>(), [0, 4, 8]);
/// assert_eq!(windows.slice_of(9), Some(8));
/// assert_eq!(windows.slice_of(11), Some(10));
/// # Ok::<(), tidegate_operators::window::WindowsError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Windows {
    size: Time,
    slide: Time,
    offset: Time,
    allowed_lateness: Time,
}

/// Windows that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum WindowsError {
    /// A length that is no length.
    #[error("a window's size is {0}: it has to be at least 1")]
    Size(Time),
    /// A distance that is no distance.
    #[error("the slide of windows is {0}: it has to be at least 1")]
    Slide(Time),
    /// A lateness below zero.
    #[error("the allowed lateness is {0}: it has to be at least 0")]
    Lateness(Time),
}

impl Windows {
    /// Windows side by side: every time is in one.
    ///
    /// # Errors
    /// [`WindowsError::Size`] for a size below 1.
    pub fn tumbling(size: Time) -> Result<Self, WindowsError> {
        Windows::sliding(size, size)
    }

    /// Windows that start every `slide`: a time is in several where the slide is less than the
    /// size, and in one or none where it is more.
    ///
    /// # Errors
    /// [`WindowsError`] for a size or a slide below 1.
    pub fn sliding(size: Time, slide: Time) -> Result<Self, WindowsError> {
        if size < 1 {
            return Err(WindowsError::Size(size));
        }
        if slide < 1 {
            return Err(WindowsError::Slide(slide));
        }
        Ok(Windows { size, slide, offset: 0, allowed_lateness: 0 })
    }

    /// The same windows, moved by `offset`.
    pub fn with_offset(self, offset: Time) -> Self {
        Windows { offset: offset.rem_euclid(self.slide), ..self }
    }

    /// The same windows, whose results wait until the frontier is so far past their end, so that
    /// late records still count.
    ///
    /// # Errors
    /// [`WindowsError::Lateness`] for less than 0.
    pub fn with_allowed_lateness(self, lateness: Time) -> Result<Self, WindowsError> {
        if lateness < 0 {
            return Err(WindowsError::Lateness(lateness));
        }
        Ok(Windows { allowed_lateness: lateness, ..self })
    }

    /// How long after its end a window still takes records.
    pub fn allowed_lateness(&self) -> Time {
        self.allowed_lateness
    }

    /// The end of the window that starts at `start`; the largest time where it lies beyond.
    #[inline]
    pub fn end(&self, start: Time) -> Time {
        start.saturating_add(self.size)
    }

    /// The start of the window after the one that starts at `start`.
    #[inline]
    pub fn next_start(&self, start: Time) -> Time {
        start.saturating_add(self.slide)
    }

    /// Whether a window is one slice.
    pub fn is_one_slice(&self) -> bool {
        self.slide >= self.size
    }

    /// The last start that is not after `time`. Within a slide of the least time there is none;
    /// the least time stands in for it.
    #[inline]
    fn start_at_or_before(&self, time: Time) -> Time {
        let beyond = (i128::from(time) - i128::from(self.offset)).rem_euclid(i128::from(self.slide));
        // Less than the slide, which is a time.
        time.saturating_sub(beyond as Time)
    }

    /// The start of the slice that holds `time`; none where no window does.
    #[inline]
    pub fn slice_of(&self, time: Time) -> Option<Time> {
        let base = self.start_at_or_before(time);
        let beyond = time.saturating_sub(base);
        // Windows that began earlier end so far behind each start.
        let border = if self.is_one_slice() { self.size } else { self.size % self.slide };
        match beyond < border || border == 0 {
            true => Some(base),
            false if self.slide > self.size => None,
            false if self.slide == self.size => Some(base),
            false => Some(base.saturating_add(border)),
        }
    }

    /// The last start of a window that holds `time`; none where no window does.
    #[inline]
    pub fn last_start(&self, time: Time) -> Option<Time> {
        let start = self.start_at_or_before(time);
        (time < self.end(start) || self.end(start) == Time::MAX).then_some(start)
    }

    /// The first start of a window that holds the slice which starts at `slice`.
    pub fn first_start(&self, slice: Time) -> Time {
        let last = self.start_at_or_before(slice);
        let reach = (i128::from(slice) - i128::from(last) - i128::from(self.size)).unsigned_abs();
        let earlier = (reach as i128 - 1).max(0) / i128::from(self.slide) * i128::from(self.slide);
        Time::try_from(i128::from(last) - earlier).unwrap_or(Time::MIN)
    }

    /// The starts of all windows that hold `time`, in order.
    pub fn starts_of(&self, time: Time) -> impl Iterator<Item = Time> + use<> {
        let (windows, last) = (*self, self.last_start(time));
        let mut next = last.map(|_| windows.first_start(time));
        std::iter::from_fn(move || {
            let start = next?;
            let following = windows.next_start(start);
            next = (Some(start) < last && following > start).then_some(following);
            Some(start)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The windows that hold a time, by looking at each candidate.
    fn starts(size: Time, slide: Time, offset: Time, time: Time) -> Vec<Time> {
        let all = (time - size - 2 * slide)..=time;
        all.filter(|start| (start - offset).rem_euclid(slide) == 0 && time < start + size).collect()
    }

    proptest! {
        #[test]
        fn starts_are_those_that_a_search_finds(size in 1i64..20, slide in 1i64..20, offset in -30i64..30, time in -60i64..60) {
            let windows = Windows::sliding(size, slide).unwrap().with_offset(offset);
            let expected = starts(size, slide, offset, time);
            prop_assert_eq!(windows.starts_of(time).collect::<Vec<_>>(), expected.clone());
            prop_assert_eq!(windows.last_start(time), expected.last().copied());
            prop_assert_eq!(windows.slice_of(time).is_some(), !expected.is_empty());
        }

        #[test]
        fn times_of_a_slice_are_in_the_same_windows(size in 1i64..20, slide in 1i64..20, offset in -30i64..30, time in -60i64..60) {
            let windows = Windows::sliding(size, slide).unwrap().with_offset(offset);
            if let Some(slice) = windows.slice_of(time) {
                prop_assert!(slice <= time && windows.slice_of(slice) == Some(slice));
                prop_assert_eq!(starts(size, slide, offset, slice), starts(size, slide, offset, time));
            }
        }
    }

    #[test]
    fn a_slide_has_two_slices_at_most() {
        for (size, slide) in [(60, 1), (10, 4), (7, 5), (1_000_003, 1000)] {
            let windows = Windows::sliding(size, slide).unwrap();
            let slices: std::collections::BTreeSet<_> =
                (0..slide).filter_map(|time| windows.slice_of(time)).collect();
            assert!(slices.len() <= 2, "{size}, {slide}: {slices:?}");
        }
    }

    #[test]
    fn the_ends_of_time_are_in_windows() {
        for windows in [Windows::tumbling(10), Windows::sliding(10, 3), Windows::tumbling(Time::MAX)] {
            let windows = windows.unwrap().with_offset(1);
            for time in [Time::MIN, Time::MIN + 1, -1, 0, Time::MAX - 1, Time::MAX] {
                assert!(windows.slice_of(time).is_some_and(|slice| slice <= time), "{windows:?}, {time}");
                let starts: Vec<_> = windows.starts_of(time).collect();
                assert!(!starts.is_empty() && starts.is_sorted(), "{windows:?}, {time}");
            }
        }
    }

    #[test]
    fn windows_that_cannot_be_are_refused() {
        assert_eq!(Windows::tumbling(0), Err(WindowsError::Size(0)));
        assert_eq!(Windows::sliding(5, -1), Err(WindowsError::Slide(-1)));
        assert!(Windows::tumbling(5).unwrap().with_allowed_lateness(-1).is_err());
    }
}
