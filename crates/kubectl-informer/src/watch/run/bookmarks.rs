//! Bookmarks among the events of `--watch-events`.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::Watch;

/// The minimum time between two bookmarks of a type. Servers send about one a minute.
const BOOKMARK_EVERY: Duration = Duration::from_secs(60);

/// The last bookmark of a type.
pub(super) struct Bookmark {
    version: String,
    at: Instant,
}

impl Watch {
    /// Prints the bookmarks that are due.
    pub(super) fn mark(&mut self) -> io::Result<()> {
        if !self.options.watch_events {
            return Ok(());
        }
        match self.bookmarks() {
            Ok(text) if text.is_empty() => Ok(()),
            Ok(text) => self.screen.print(&text).and_then(|()| self.screen.flush()),
            Err(problem) => {
                self.screen.note(&problem);
                Ok(())
            }
        }
    }

    /// Returns a bookmark for each type that is due for one and whose events have all been printed.
    pub(super) fn bookmarks(&mut self) -> Result<String, String> {
        let mut text = String::new();
        for source in self.sources.iter_mut().filter(|source| source.initial.is_none()) {
            // First the version, and then the backlog: the cache and the backlog change together, so
            // that an empty backlog means that everything up to the version has been printed.
            let version = source.informer.status().resource_version.to_string();
            let due = source
                .bookmark
                .as_ref()
                .is_none_or(|last| last.version != version && last.at.elapsed() >= BOOKMARK_EVERY);
            if due && source.registration.backlog() == 0 {
                let listed = source.bookmark.is_none();
                text.push_str(&self.printer.bookmark(&source.of, &version, listed)?);
                source.bookmark = Some(Bookmark { version, at: Instant::now() });
            }
        }
        Ok(text)
    }
}
