//! Numbered places that are used again.

/// Values under small numbers. What is visited in the order of the numbers is visited in the same
/// order in every run, which no randomly seeded map can say.
pub(super) struct Slab<T> {
    entries: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Slab<T> {
    pub(super) fn insert(&mut self, value: T) -> u32 {
        if let Some(at) = self.free.pop() {
            self.entries[at as usize] = Some(value);
            return at;
        }
        self.entries.push(Some(value));
        (self.entries.len() - 1) as u32
    }

    pub(super) fn remove(&mut self, at: u32) -> Option<T> {
        let removed = self.entries.get_mut(at as usize)?.take()?;
        self.free.push(at);
        Some(removed)
    }

    pub(super) fn get(&self, at: u32) -> Option<&T> {
        self.entries.get(at as usize)?.as_ref()
    }

    pub(super) fn get_mut(&mut self, at: u32) -> Option<&mut T> {
        self.entries.get_mut(at as usize)?.as_mut()
    }

    /// All of them with their numbers, in the order of those.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let numbered = self.entries.iter().enumerate();
        numbered.filter_map(|(at, entry)| Some((at as u32, entry.as_ref()?)))
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    /// One more than the greatest number that was ever given out.
    pub(super) fn places(&self) -> usize {
        self.entries.len()
    }
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { entries: Vec::new(), free: Vec::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_used_again_and_visited_in_order() {
        let mut slab = Slab::default();
        let [a, b, c] = ["a", "b", "c"].map(|text| slab.insert(text));
        assert_eq!((slab.remove(b), slab.remove(b), slab.remove(9)), (Some("b"), None, None));
        assert_eq!((slab.len(), slab.get(b)), (2, None));
        assert_eq!(slab.insert("d"), b);
        assert_eq!(slab.iter().collect::<Vec<_>>(), [(a, &"a"), (b, &"d"), (c, &"c")]);
        assert_eq!((slab.len(), slab.places()), (3, 3));
    }
}
