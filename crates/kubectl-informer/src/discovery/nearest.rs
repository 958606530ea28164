//! Suggests a name for a mistyped word.

/// Returns the name nearest to a word, if it is near enough to be a typo.
pub(crate) fn nearest(word: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let word: Vec<char> = word.to_lowercase().chars().take(LENGTH_MAX).collect();
    // One typo per three letters. A word of two letters could be anything.
    let allowed = (word.len() / 3).clamp(1, 3);
    let near = names.filter(|name| !name.is_empty()).map(|name| (distance(&word, &name), name));
    let (found, name) =
        near.min_by(|a, b| a.0.cmp(&b.0).then_with(|| a.1.len().cmp(&b.1.len())))?;
    (word.len() > 1 && found <= allowed).then_some(name)
}

/// The length at which words are cut. No type has a longer name.
const LENGTH_MAX: usize = 300;

/// Returns the number of letters to replace, insert, delete or swap with their neighbour.
fn distance(word: &[char], name: &str) -> usize {
    let name: Vec<char> = name.chars().collect();
    let mut two_above = Vec::new();
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (row, letter) in word.iter().enumerate() {
        let mut now = vec![row + 1];
        for (column, other) in name.iter().enumerate() {
            let changed = above[column] + usize::from(letter != other);
            let mut fewest = changed.min(above[column + 1] + 1).min(now[column] + 1);
            let swapped =
                row > 0 && column > 0 && *letter == name[column - 1] && word[row - 1] == *other;
            if swapped {
                fewest = fewest.min(two_above[column - 1] + 1);
            }
            now.push(fewest);
        }
        two_above = std::mem::replace(&mut above, now);
    }
    above.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn near(word: &str) -> Option<String> {
        let names =
            ["pods", "po", "pod", "deployments", "deploy", "deployments.apps", "nodes", "no"];
        nearest(word, names.iter().map(|&name| name.to_owned()))
    }

    #[test]
    fn a_slip_is_recognised() {
        for (word, meant) in [
            ("pdos", "pods"),
            ("podds", "pods"),
            ("deploymnets", "deployments"),
            ("Deploymets", "deployments"),
            ("ndoes", "nodes"),
        ] {
            assert_eq!(near(word).as_deref(), Some(meant), "{word}");
        }
    }

    #[test]
    fn what_is_far_off_is_not() {
        assert_eq!(near("certificates"), None);
        assert_eq!(near(""), None);
        assert_eq!(near("x"), None);
        assert_eq!(near(&"x".repeat(100_000)), None);
    }
}
