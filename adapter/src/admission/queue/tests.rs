//! A model beside the queue: whatever is done in whatever order, nothing is given twice, nothing is lost, and nobody is
//! passed too often.

use super::{Amount, Arrival, Grant, Queue, Ticket};
use proptest::collection::vec;
use proptest::prelude::*;

const fn need(scratch_mebibytes: u64, memory_bytes: u64) -> Amount {
    Amount {
        slots: 1,
        scratch_mebibytes,
        memory_bytes,
    }
}

const NOTHING: Amount = Amount {
    slots: 0,
    scratch_mebibytes: 0,
    memory_bytes: 0,
};

fn waits(arrival: Arrival) -> Ticket {
    match arrival {
        Arrival::Waits(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

/// All three slots are taken; a large one waits for scratch, and two small ones have passed it.
fn crowded() -> (Queue, Ticket) {
    let total = Amount {
        slots: 3,
        scratch_mebibytes: 10,
        memory_bytes: 0,
    };
    let mut queue = Queue::new(total, 100);
    assert_eq!(queue.arrive(need(5, 0)), Arrival::Granted);
    let large = waits(queue.arrive(need(8, 0)));
    for _ in 0..2 {
        assert_eq!(queue.arrive(need(1, 0)), Arrival::Granted, "it passes");
    }
    (queue, large)
}

#[test]
fn a_large_one_leaves_no_slot_idle_and_is_passed_once_for_each_slot() {
    let (mut queue, large) = crowded();
    let third = waits(queue.arrive(need(1, 0)));
    let fourth = waits(queue.arrive(need(1, 0)));
    let granted = |ticket: Ticket, amount: Amount| Grant { ticket, amount };
    assert_eq!(queue.release(need(1, 0)), [granted(third, need(1, 0))]);
    // Now as many have passed as there are slots.
    assert_eq!(queue.release(need(1, 0)), []);
    assert_eq!(queue.release(need(1, 0)), []);
    assert_eq!(queue.in_use(), need(5, 0));
    assert_eq!(
        queue.release(need(5, 0)),
        [granted(large, need(8, 0)), granted(fourth, need(1, 0))]
    );
}

#[test]
fn the_oldest_of_those_who_are_passed_decides() {
    let (mut queue, _) = crowded();
    // Nobody has passed this one yet, but whoever passes it passes the older one for the last time.
    waits(queue.arrive(need(8, 0)));
    let next = waits(queue.arrive(need(1, 0)));
    waits(queue.arrive(need(1, 0)));
    let both = Amount {
        slots: 2,
        ..need(2, 0)
    };
    let granted = queue.release(both);
    assert_eq!(
        granted.iter().map(|grant| grant.ticket).collect::<Vec<_>>(),
        [next]
    );
}

#[test]
fn whoever_is_held_back_for_one_that_leaves_may_begin() {
    let total = Amount {
        slots: 1,
        scratch_mebibytes: 10,
        memory_bytes: 0,
    };
    // One slot: one may pass.
    let mut queue = Queue::new(Amount { slots: 2, ..total }, 9);
    assert_eq!(queue.arrive(need(5, 0)), Arrival::Granted);
    let large = waits(queue.arrive(need(10, 0)));
    for _ in 0..2 {
        assert_eq!(queue.arrive(need(1, 0)), Arrival::Granted);
        assert_eq!(queue.release(need(1, 0)), []);
    }
    let small = waits(queue.arrive(need(1, 0)));
    let grants = queue.leave(large).unwrap();
    assert_eq!(
        grants.iter().map(|grant| grant.ticket).collect::<Vec<_>>(),
        [small]
    );
    assert_eq!(queue.leave(large), None);
    assert_eq!(queue.leave(small), None, "it is granted, not waiting");
}

#[test]
fn what_can_never_fit_is_refused_first_and_a_full_queue_then() {
    let total = Amount {
        slots: 1,
        scratch_mebibytes: 10,
        memory_bytes: 10,
    };
    let mut queue = Queue::new(total, 1);
    assert_eq!(queue.arrive(need(1, 1)), Arrival::Granted);
    waits(queue.arrive(need(1, 1)));
    for (too_much, arrival) in [
        (need(11, 1), Arrival::NeverFits),
        (need(1, 11), Arrival::NeverFits),
        (need(10, 10), Arrival::Full),
    ] {
        assert_eq!(queue.arrive(too_much), arrival, "{too_much:?}");
    }
}

/// Something that happens. Indices are taken modulo what there is.
#[derive(Debug, Clone)]
enum Step {
    Arrive(Amount),
    /// One who waits gives up, is cancelled or runs into its timeout.
    Leave(usize),
    /// A run ends, well or in a panic: its permit is dropped.
    End(usize),
    /// A run's slot and scratch come back, while its answer is still being written.
    EndButForMemory(usize),
    /// One gives up in the moment in which something is granted to it: the permit that it never saw is dropped.
    EndAndAllGrantedLeave(usize),
}

fn amount() -> impl Strategy<Value = Amount> {
    // Mostly small, sometimes all there is, sometimes more than that.
    let scratch = prop_oneof![4 => 0_u64..4, 2 => 4_u64..=12, 1 => Just(13)];
    let memory = prop_oneof![4 => 0_u64..3, 1 => 3_u64..=8, 1 => Just(9)];
    (scratch, memory).prop_map(|(scratch, memory)| need(scratch, memory))
}

fn step() -> impl Strategy<Value = Step> {
    let any = 0_usize..64;
    prop_oneof![
        6 => amount().prop_map(Step::Arrive),
        1 => any.clone().prop_map(Step::Leave),
        3 => any.clone().prop_map(Step::End),
        1 => any.clone().prop_map(Step::EndButForMemory),
        1 => any.prop_map(Step::EndAndAllGrantedLeave),
    ]
}

#[derive(Debug)]
struct Waiting {
    ticket: Ticket,
    need: Amount,
    passed: u32,
}

/// What must be true, kept in the plainest way.
#[derive(Debug)]
struct Model {
    queue: Queue,
    total: Amount,
    places: usize,
    held: Vec<Amount>,
    waiting: Vec<Waiting>,
}

impl Model {
    fn new(slots: u64, max_waiting: u64) -> Self {
        let total = Amount {
            slots,
            scratch_mebibytes: 12,
            memory_bytes: 8,
        };
        Self {
            queue: Queue::new(total, max_waiting),
            total,
            places: usize::try_from(slots + max_waiting).unwrap(),
            held: Vec::new(),
            waiting: Vec::new(),
        }
    }

    fn slots_taken(&self) -> usize {
        self.held.iter().filter(|amount| amount.slots == 1).count()
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Arrive(need) => {
                let present = self.slots_taken() + self.waiting.len();
                match self.queue.arrive(*need) {
                    Arrival::NeverFits => assert!(!need.fits(self.total)),
                    Arrival::Full => assert!(need.fits(self.total) && present >= self.places),
                    Arrival::Waits(ticket) => {
                        assert!(present < self.places);
                        self.waiting.push(Waiting {
                            ticket,
                            need: *need,
                            passed: 0,
                        });
                    }
                    Arrival::Granted => {
                        assert!(present < self.places);
                        self.waiting.iter_mut().for_each(|older| older.passed += 1);
                        self.held.push(*need);
                    }
                }
            }
            Step::Leave(which) => {
                if let Some(index) = which.checked_rem(self.waiting.len()) {
                    let left = self.waiting.remove(index);
                    let grants = self.queue.leave(left.ticket).expect("it waits");
                    self.granted(&grants);
                    assert_eq!(self.queue.leave(left.ticket), None, "nobody leaves twice");
                }
            }
            Step::End(which) => {
                if let Some(index) = which.checked_rem(self.held.len()) {
                    let back = self.held.swap_remove(index);
                    let grants = self.queue.release(back);
                    self.granted(&grants);
                }
            }
            Step::EndButForMemory(which) => {
                if let Some(index) = which.checked_rem(self.held.len()) {
                    let answer = Amount {
                        slots: 0,
                        scratch_mebibytes: 0,
                        ..self.held[index]
                    };
                    let back = self.held[index].minus(answer);
                    self.held[index] = answer;
                    let grants = self.queue.release(back);
                    self.granted(&grants);
                }
            }
            Step::EndAndAllGrantedLeave(which) => {
                if let Some(index) = which.checked_rem(self.held.len()) {
                    let back = self.held.swap_remove(index);
                    let mut grants = self.queue.release(back);
                    // Each release may grant to others, who have left, too.
                    while let Some(grant) = grants.pop() {
                        self.granted(&[grant]);
                        let back = self.held.pop().unwrap();
                        assert_eq!(self.queue.leave(grant.ticket), None);
                        grants.extend(self.queue.release(back));
                    }
                }
            }
        }
    }

    fn granted(&mut self, grants: &[Grant]) {
        for grant in grants {
            let index = self
                .waiting
                .iter()
                .position(|waiting| waiting.ticket == grant.ticket)
                .expect("only who waits is granted anything");
            let granted = self.waiting.remove(index);
            assert_eq!(granted.need, grant.amount);
            self.waiting[..index]
                .iter_mut()
                .for_each(|older| older.passed += 1);
            self.held.push(granted.need);
        }
    }

    fn check(&self) {
        let sum = self.held.iter().fold(NOTHING, |sum, amount| sum.plus(*amount));
        assert!(sum.fits(self.total), "over budget: {sum:?}");
        assert_eq!(self.queue.in_use(), sum, "given and not taken, or lost");
        assert_eq!(self.queue.waiting(), self.waiting.len());
        let free = self.total.minus(sum);
        let bound = self.queue.overtakes();
        let mut held_back = false;
        for waiting in &self.waiting {
            assert!(waiting.passed <= bound, "passed too often: {waiting:?}");
            assert!(
                held_back || !waiting.need.fits(free),
                "idle: {waiting:?} of {free:?}"
            );
            held_back |= waiting.passed == bound;
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn whatever_happens_in_whatever_order(
        slots in 1_u64..5,
        max_waiting in 0_u64..8,
        steps in vec(step(), 1..120),
    ) {
        let mut model = Model::new(slots, max_waiting);
        for step in &steps {
            model.take(step);
            model.check();
        }
        // Runs end, sooner or later; then nobody is left waiting.
        let mut ends = 0;
        while !model.held.is_empty() {
            model.take(&Step::End(0));
            model.check();
            ends += 1;
            prop_assert!(ends <= steps.len() + 1, "it does not come to an end");
        }
        prop_assert!(model.waiting.is_empty(), "starved: {:?}", model.waiting);
        prop_assert_eq!(model.queue.in_use(), NOTHING);
    }
}
