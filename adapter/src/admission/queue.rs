//! Who may begin: one queue for everything that runs share. A state machine over plain data, without clock or waiting.
//!
//! ```text
//!            arrive, fits          release
//!   (new) ─────────────► granted ─────────► (gone)
//!     │ arrive, no room     ▲
//!     ├────────► waiting ───┘ some release or leave makes room, and nobody older is passed too often
//!     │             └──────► (gone)   leave
//!     └────────► refused              arrive, no place in the queue, or more than there is at all
//! ```
//!
//! **Order.** First come, first served, with bounded overtaking: who fits may pass older ones that do not fit, so that a
//! large request leaves no slot idle while it waits for scratch. But nobody is ever passed by more than
//! [`Queue::overtakes`] younger ones. Once that many have passed, everybody behind waits, what becomes free is kept, and
//! the old one is next. So small ones wait for a large one no longer than runs last, and the other way round.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;

/// What a run takes of each thing that runs share.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    /// Slots; 1 while a run is under way.
    pub slots: u64,
    /// Scratch, MiB.
    pub scratch_mebibytes: u64,
    /// Memory for documents and answers, bytes.
    pub memory_bytes: u64,
}

impl Amount {
    /// Whether there is so much in `free`.
    pub const fn fits(self, free: Self) -> bool {
        self.slots <= free.slots
            && self.scratch_mebibytes <= free.scratch_mebibytes
            && self.memory_bytes <= free.memory_bytes
    }

    /// What is left after `taken`; nothing goes below zero.
    #[must_use]
    pub const fn minus(self, taken: Self) -> Self {
        Self {
            slots: self.slots.saturating_sub(taken.slots),
            scratch_mebibytes: self.scratch_mebibytes.saturating_sub(taken.scratch_mebibytes),
            memory_bytes: self.memory_bytes.saturating_sub(taken.memory_bytes),
        }
    }

    /// Both together.
    #[must_use]
    pub const fn plus(self, more: Self) -> Self {
        Self {
            slots: self.slots.saturating_add(more.slots),
            scratch_mebibytes: self.scratch_mebibytes.saturating_add(more.scratch_mebibytes),
            memory_bytes: self.memory_bytes.saturating_add(more.memory_bytes),
        }
    }
}

/// One who waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(u64);

/// What becomes of one who arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// It has what it needs.
    Granted,
    /// It is told by a [`Grant`] of a later step.
    Waits(Ticket),
    /// As many as allowed run and wait already.
    Full,
    /// It needs more than there is.
    NeverFits,
}

/// One who waited has what it needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// Who.
    pub ticket: Ticket,
    /// What it has now.
    pub amount: Amount,
}

#[derive(Debug, Clone, Copy)]
struct Waiter {
    ticket: Ticket,
    need: Amount,
    passed: u32,
}

/// Everything that is shared, and who waits for some of it.
#[derive(Debug)]
pub struct Queue {
    total: Amount,
    free: Amount,
    places: u64,
    overtakes: u32,
    next: u64,
    /// Oldest first. Between two steps nobody in it may begin.
    waiting: VecDeque<Waiter>,
}

impl Queue {
    /// Nobody runs and nobody waits. At most `max_waiting` more than slots may run and wait together; each of them may
    /// be passed by as many as there are slots, which is one generation of runs.
    pub fn new(total: Amount, max_waiting: u64) -> Self {
        Self {
            total,
            free: total,
            places: total.slots.saturating_add(max_waiting),
            overtakes: u32::try_from(total.slots).unwrap_or(u32::MAX).max(1),
            next: 0,
            waiting: VecDeque::new(),
        }
    }

    /// How many younger ones may pass one who waits.
    pub const fn overtakes(&self) -> u32 {
        self.overtakes
    }

    /// What is taken now.
    pub const fn in_use(&self) -> Amount {
        self.total.minus(self.free)
    }

    /// What there is in all.
    pub const fn total(&self) -> Amount {
        self.total
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Somebody wants `need`.
    pub fn arrive(&mut self, need: Amount) -> Arrival {
        if !need.fits(self.total) {
            return Arrival::NeverFits;
        }
        let present = self.in_use().slots.saturating_add(self.waiting.len() as u64);
        if present >= self.places {
            return Arrival::Full;
        }
        let ticket = Ticket(self.next);
        self.next += 1;
        self.waiting.push_back(Waiter {
            ticket,
            need,
            passed: 0,
        });
        // It makes nobody else fit, so a grant can only be its own.
        if self.grant().is_empty() {
            Arrival::Waits(ticket)
        } else {
            Arrival::Granted
        }
    }

    /// One who waited does not want to any more. `None` when it does not wait: then it has been granted what it needs,
    /// which is to be released.
    pub fn leave(&mut self, ticket: Ticket) -> Option<Vec<Grant>> {
        let index = self
            .waiting
            .binary_search_by_key(&ticket, |waiter| waiter.ticket)
            .ok()?;
        self.waiting.remove(index);
        // It may have been the one for whom others were held back.
        Some(self.grant())
    }

    /// Something that was granted comes back, in one piece or in several.
    pub fn release(&mut self, amount: Amount) -> Vec<Grant> {
        debug_assert!(
            amount.fits(self.in_use()),
            "{amount:?} comes back of {:?}",
            self.in_use()
        );
        self.free = self.total.minus(self.in_use().minus(amount));
        self.grant()
    }

    /// Grants to everybody who may begin now.
    fn grant(&mut self) -> Vec<Grant> {
        let mut grants = Vec::new();
        let mut index = 0;
        // How many may still pass those before `index`.
        let mut may_pass = u32::MAX;
        while let Some(waiter) = self.waiting.get(index).copied() {
            if self.free.slots == 0 || may_pass == 0 {
                break;
            }
            if !waiter.need.fits(self.free) {
                may_pass = may_pass.min(self.overtakes.saturating_sub(waiter.passed));
                index += 1;
                continue;
            }
            self.free = self.free.minus(waiter.need);
            self.waiting.remove(index);
            for older in self.waiting.iter_mut().take(index) {
                older.passed += 1;
            }
            may_pass = may_pass.saturating_sub(u32::from(index > 0));
            grants.push(Grant {
                ticket: waiter.ticket,
                amount: waiter.need,
            });
        }
        grants
    }
}
