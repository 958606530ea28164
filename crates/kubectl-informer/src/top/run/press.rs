//! Draws the view, and reacts to the keys that the user presses.

use std::io;

use super::{Live, Top};
use crate::keys::{Action, Input, Keys};
use crate::screen::Pieces;

/// The keys and their effects. It fits 60 columns.
const HELP: &str = "\
Keys:
  q  ends              space  pauses the display, and resumes
  /  filters by name   ?      shows this help, or hides it

";

/// Explains why nothing moves.
const PAUSED: &str = "‖ paused: counting goes on · space resumes\n";

impl Top {
    /// Reacts to an input. Returns whether the user wants to end. The inner error is that of the
    /// output.
    pub(super) async fn input(
        &mut self,
        input: Input,
        keys: &mut Keys,
    ) -> Result<io::Result<bool>, String> {
        let key = match input {
            Input::Key(key) => key,
            Input::Suspend => {
                if let Some(Err(error)) = self.live.as_mut().map(|live| live.draw("")) {
                    return Ok(Err(error));
                }
                keys.suspend().await;
                return Ok(self.draw()?.map(|()| false));
            }
        };
        match self.controls.press(key) {
            Some(Action::Quit) => return Ok(Ok(true)),
            Some(Action::Pause | Action::Filter) => {
                let text = self.view().text()?;
                self.paused = self.controls.paused.then_some(text);
            }
            Some(Action::Help) => self.helps = !self.helps,
            Some(Action::Prompt) => {}
            // A view that is replaced has no place for an empty line.
            Some(Action::Diff | Action::Space) | None => return Ok(Ok(false)),
        }
        Ok(self.draw()?.map(|()| false))
    }

    /// Draws the view on the terminal. The inner error is that of the output.
    pub(super) fn draw(&mut self) -> Result<io::Result<()>, String> {
        let mut text = String::new();
        if let Some(prompt) = self.controls.prompt(Live::columns()) {
            text.push_str(&format!("{}\n", plain(prompt)));
        }
        text.push_str(&self.caches.trouble(&self.cluster, |_| true));
        if self.helps {
            text.push_str(HELP);
        }
        match &self.paused {
            Some(view) => text.push_str(&format!("{PAUSED}{view}")),
            None => text.push_str(&self.view().text()?),
        }
        Ok(self.live.as_mut().map_or(Ok(()), |live| live.draw(&text)))
    }
}

fn plain(line: Pieces) -> String {
    line.into_iter().map(|(piece, _)| piece).collect()
}
