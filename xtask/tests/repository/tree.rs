//! The files of the repository, or of a test, as text.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Directories that tools create. `.git` is a file in a worktree.
const MADE: [&str; 5] = [".git", "target", "corpus", "artifacts", "node_modules"];

/// The contents of files, by path from the root, with slashes.
#[derive(Debug, Default)]
pub(crate) struct Tree(BTreeMap<String, String>);

impl Tree {
    pub(crate) fn repository() -> Self {
        let mut tree = Self::default();
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
        tree.read(Path::new(root), "");
        assert!(tree.0.contains_key("Cargo.toml"), "{root} is not the root of the repository");
        tree
    }

    /// Returns a tree for a test.
    pub(crate) fn of<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        Self(files.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned())).collect())
    }

    fn read(&mut self, directory: &Path, prefix: &str) {
        let entries = fs::read_dir(directory).expect("a directory of the repository");
        for entry in entries.map(|entry| entry.expect("an entry")) {
            let name = entry.file_name().into_string().expect("names are UTF-8");
            let path = format!("{prefix}{name}");
            if MADE.contains(&&*name) {
                continue;
            }
            if entry.file_type().expect("a type").is_dir() {
                self.read(&entry.path(), &format!("{path}/"));
            } else if let Ok(text) = fs::read_to_string(entry.path()) {
                self.0.insert(path, text);
            } else {
                // Not text: its existence is enough for links.
                self.0.insert(path, String::new());
            }
        }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(path, text)| (&**path, &**text))
    }

    /// Returns the files whose names have this suffix.
    pub(crate) fn with_end(&self, end: &str) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(move |(path, _)| path.ends_with(end))
    }

    pub(crate) fn get(&self, path: &str) -> Option<&str> {
        self.0.get(path).map(String::as_str)
    }

    /// Returns whether a file or a directory has this path.
    pub(crate) fn has(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let inside = format!("{path}/");
        path.is_empty()
            || self.0.contains_key(path)
            || self.0.keys().any(|file| file.starts_with(&inside))
    }
}
