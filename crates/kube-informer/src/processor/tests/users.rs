//! User code that runs when a value is dropped.

use std::cell::{Cell, RefCell};
use std::sync::mpsc;
use std::thread;

use super::*;
use crate::Transform;
use crate::object::Packer;
use crate::processor::backlog::BACKLOG_EVENTS_MAX;

thread_local! {
    static PROCESSOR: RefCell<Weak<Processor>> = const { RefCell::new(Weak::new()) };
    static REGISTERED: Cell<usize> = const { Cell::new(0) };
}

/// A type that registers a handler when it is dropped.
struct Registers;

impl Drop for Registers {
    fn drop(&mut self) {
        if let Some(processor) = PROCESSOR.with_borrow(Weak::upgrade) {
            HandlerBuilder::<Untyped>::new(processor, None, None).for_each(drop);
            REGISTERED.set(REGISTERED.get() + 1);
        }
    }
}

fn registers(name: &str, version: u64) -> Object {
    let packer = Packer::new(Transform::default(), Some(|_| Ok(Arc::new(Registers))), false);
    packer.repack(object(name, version)).unwrap()
}

/// Runs code that could deadlock, and fails if it does.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || tell.send(work()).unwrap());
    told.recv_timeout(Duration::from_secs(60)).expect("it waits for a lock that it holds")
}

/// Returns an informer with one object, of type [`Registers`].
fn fake() -> Fake {
    let fake = Fake::new();
    PROCESSOR.set(Arc::downgrade(&fake.processor));
    fake.list(vec![registers("a", 1)]);
    fake
}

fn gone(name: &str, version: u64) -> Delta {
    Delta::Deleted(Deleted { object: object(name, version), final_state: FinalState::Known })
}

#[test]
fn i29_the_drop_of_a_deleted_or_replaced_object_may_register_handlers() {
    let relist = Delta::ReplacedAll { objects: vec![], unreadable: vec![], version: "9".into() };
    for delta in [Delta::Updated(object("a", 2)), gone("a", 3), relist] {
        let registered = ends(|| {
            let fake = fake();
            fake.processor.write(0, vec![delta]);
            PROCESSOR.take();
            REGISTERED.get()
        });
        assert_eq!(registered, 1);
    }
}

#[test]
fn i29_so_may_that_of_a_state_that_was_merged_away() {
    let merged = ends(|| {
        let fake = fake();
        let (registration, _) = fake.noting();
        for version in 0..BACKLOG_EVENTS_MAX as u64 + 10 {
            fake.processor.write(0, vec![Delta::Updated(registers("a", 2 + version))]);
        }
        fake.processor.write(0, vec![gone("a", 10_000)]);
        assert!(REGISTERED.get() > 0);
        PROCESSOR.take();
        registration.merged()
    });
    assert!(merged > 0);
}
