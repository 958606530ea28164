//! Tasks that wait for something: nearly always one.

use std::task::Waker;

/// The wakers of some tasks. The first one takes no allocation.
#[derive(Default)]
pub(crate) struct Wakers {
    first: Option<Waker>,
    more: Vec<Waker>,
}

impl Wakers {
    /// Adds a task, once however often it asks.
    pub(crate) fn add(&mut self, waker: &Waker) {
        if !self.first.iter().chain(&self.more).any(|known| known.will_wake(waker)) {
            self.push(waker.clone());
        }
    }

    pub(crate) fn push(&mut self, waker: Waker) {
        match self.first {
            None => self.first = Some(waker),
            Some(_) => self.more.push(waker),
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.first.iter().len() + self.more.len()
    }

    /// Takes all of them out.
    pub(crate) fn take(&mut self) -> Self {
        std::mem::take(self)
    }

    /// Wakes all of them. That runs code of the executor: the caller holds no lock.
    pub(crate) fn wake(self) {
        self.first.into_iter().chain(self.more).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);
    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn each_task_is_woken_once() {
        let counts: Vec<Arc<Count>> = (0..3).map(|_| Arc::default()).collect();
        let mut wakers = Wakers::default();
        for count in counts.iter().chain(&counts) {
            wakers.add(&count.clone().into());
        }
        let taken = wakers.take();
        wakers.wake();
        assert!(counts.iter().all(|count| count.0.load(Ordering::Relaxed) == 0));
        taken.wake();
        assert!(counts.iter().all(|count| count.0.load(Ordering::Relaxed) == 1));
    }
}
