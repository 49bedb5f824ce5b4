//! Memory for decoded values, shared by the tables of a worker.

use std::cell::Cell;

/// How much the tables of one store may keep beyond a release.
///
/// Every table has a fair share; what others leave unused, it may use as well, until they need
/// it. A limit of 0 keeps nothing: then changes are written through at the end of each release.
#[derive(Debug)]
pub struct CacheBudget {
    limit_bytes: usize,
    working_bytes: usize,
    limit_rows: Option<usize>,
    /// Out of the limit, what others need.
    lent_bytes: Cell<usize>,
    used_bytes: Cell<usize>,
    tables: Cell<usize>,
}

/// Of its limit, a budget never lends more than all but this share.
const LEAST_SHARE: usize = 4;

/// Rows of releases that are under way or read ahead, where nothing else is said.
const WORKING_BYTES: usize = 32 << 20;

impl Default for CacheBudget {
    /// Nothing is kept beyond a release.
    fn default() -> Self {
        CacheBudget {
            limit_bytes: 0,
            working_bytes: WORKING_BYTES,
            limit_rows: None,
            lent_bytes: Cell::default(),
            used_bytes: Cell::default(),
            tables: Cell::default(),
        }
    }
}

impl CacheBudget {
    /// A budget of so many bytes.
    pub fn bytes(limit_bytes: usize) -> Self {
        CacheBudget { limit_bytes, ..Self::default() }
    }

    /// The same budget with so many bytes for the rows that a release needs and for those that are
    /// read ahead, where nothing is kept beyond a release. Where values are kept, they make room.
    pub fn with_working_bytes(self, working_bytes: usize) -> Self {
        CacheBudget { working_bytes, ..self }
    }

    /// Bytes for the rows of one table that a chunk of a release needs, and as many again for
    /// those that are read ahead.
    pub fn bytes_at_once(&self) -> usize {
        let all = if self.keeps_values() { self.limit_bytes() / 4 * 3 } else { self.working_bytes };
        all / 2 / self.tables.get().max(1)
    }

    /// A budget of so many rows in each table, whatever their size: for tests of small caches.
    pub fn rows(limit_rows: usize) -> Self {
        CacheBudget { limit_bytes: usize::MAX, limit_rows: Some(limit_rows), ..Self::default() }
    }

    /// The limit in bytes, less what is lent.
    pub fn limit_bytes(&self) -> usize {
        self.limit_bytes - self.lent_bytes.get()
    }

    /// Makes room for memory that the store's indexes and filters take: they grow with the rows,
    /// and all reads go through them, so that values give way, down to a quarter of the limit.
    pub fn lend(&self, bytes: usize) {
        self.lent_bytes.set(bytes.min(self.limit_bytes - self.limit_bytes / LEAST_SHARE));
    }

    /// Bytes that the tables hold, by their own account.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.get()
    }

    /// Whether tables keep values beyond a release.
    pub fn keeps_values(&self) -> bool {
        self.limit_bytes > 0 && self.limit_rows != Some(0)
    }

    pub(super) fn add_table(&self) {
        self.tables.set(self.tables.get() + 1);
    }

    /// A table's account has changed.
    pub(super) fn account(&self, before_bytes: usize, after_bytes: usize) {
        self.used_bytes.set((self.used_bytes.get() + after_bytes).saturating_sub(before_bytes));
    }

    /// How many rows, of this size on average, a table that has `rows` of them has to give up.
    pub(super) fn excess_rows(&self, rows: usize, row_bytes: usize) -> usize {
        if let Some(limit) = self.limit_rows {
            return rows.saturating_sub(limit);
        }
        let own = rows * row_bytes;
        let fair_share = self.limit_bytes() / self.tables.get().max(1);
        let over = self.used_bytes.get().saturating_sub(self.limit_bytes());
        over.min(own.saturating_sub(fair_share)).div_ceil(row_bytes.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_gives_up_what_is_over_but_never_its_fair_share() {
        let budget = CacheBudget::bytes(1000);
        budget.add_table();
        budget.add_table();
        budget.account(0, 900);
        assert_eq!(budget.excess_rows(90, 10), 0, "what others leave, a table may use");
        budget.account(0, 300);
        // 200 bytes over: the larger table gives them up, the smaller one nothing.
        assert_eq!(budget.excess_rows(90, 10), 20);
        assert_eq!(budget.excess_rows(30, 10), 0);
        budget.account(900, 600);
        assert_eq!(budget.excess_rows(60, 10), 0);
    }

    #[test]
    fn what_is_lent_is_given_up_down_to_a_quarter() {
        let budget = CacheBudget::bytes(1000);
        budget.add_table();
        budget.account(0, 1000);
        budget.lend(300);
        assert_eq!((budget.limit_bytes(), budget.excess_rows(100, 10)), (700, 30));
        budget.lend(5000);
        assert_eq!((budget.limit_bytes(), budget.excess_rows(100, 10)), (250, 75));
        budget.lend(0);
        assert_eq!(budget.excess_rows(100, 10), 0);
    }

    #[test]
    fn rows_can_be_limited_as_such() {
        let budget = CacheBudget::rows(10);
        assert!(budget.keeps_values());
        assert_eq!((budget.excess_rows(9, 1), budget.excess_rows(17, 1)), (0, 7));
        assert!(!CacheBudget::rows(0).keeps_values());
        assert!(!CacheBudget::bytes(0).keeps_values());
    }
}
