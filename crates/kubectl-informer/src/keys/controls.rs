//! The effects of keys, which `watch` and `top` share.

use regex_lite::Regex;

use super::Key;
use crate::cells::keep_end;
use crate::color::{BOLD, DIM, RED};
use crate::screen::Pieces;

/// The maximum length of a filter in characters. A longer one is a mistake, such as a large paste.
const FILTER_MAX: usize = 200;

/// The state that keys change.
#[derive(Default, Debug)]
pub(crate) struct Controls {
    /// Whether events or redraws are held back.
    pub(crate) paused: bool,
    /// The filter that was entered with `/`.
    pub(crate) filter: Option<Regex>,
    prompt: Option<Prompt>,
}

/// A filter that is being typed.
#[derive(Default, Debug)]
struct Prompt {
    text: String,
    /// The reason why the text is not accepted.
    problem: Option<String>,
}

/// The effect of a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Quit,
    /// Pause, or resume: `paused` has changed.
    Pause,
    Diff,
    /// `filter` has changed.
    Filter,
    /// The prompt has changed.
    Prompt,
    Help,
    /// An empty line, to separate what follows.
    Space,
}

impl Controls {
    /// Applies a key. Returns its effect, if it has one.
    pub(crate) fn press(&mut self, key: Key) -> Option<Action> {
        if let Some(prompt) = &mut self.prompt {
            match prompt.press(key) {
                Edited::Typing => return Some(Action::Prompt),
                Edited::Cancelled => {
                    self.prompt = None;
                    return Some(Action::Prompt);
                }
                Edited::Entered(filter) => {
                    self.prompt = None;
                    self.filter = filter;
                    return Some(Action::Filter);
                }
            }
        }
        Some(match key {
            Key::Char('q' | 'Q') => Action::Quit,
            Key::Char(' ') => {
                self.paused = !self.paused;
                Action::Pause
            }
            Key::Char('d') => Action::Diff,
            Key::Char('/') => {
                let text = self.filter.as_ref().map(ToString::to_string).unwrap_or_default();
                self.prompt = Some(Prompt { text, problem: None });
                Action::Prompt
            }
            Key::Char('?' | 'h') => Action::Help,
            Key::Enter => Action::Space,
            _ => return None,
        })
    }

    /// Returns whether a name passes the filter.
    pub(crate) fn passes(&self, name: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.is_match(name))
    }

    /// Returns the line to show while a filter is being typed. The cursor follows its end.
    pub(crate) fn prompt(&self, width: usize) -> Option<Pieces> {
        const NAME: &str = "filter names";
        const HELP: &str = " (Enter applies, Esc cancels): ";
        let prompt = self.prompt.as_ref()?;
        let mut line = vec![(NAME.to_owned(), Some(BOLD))];
        match &prompt.problem {
            Some(problem) => line.push((format!(" ({problem}): "), Some(RED))),
            None => line.push((HELP.to_owned(), Some(DIM))),
        }
        let taken: usize = line.iter().map(|(piece, _)| crate::cells::width(piece)).sum();
        line.push((keep_end(&prompt.text, width.saturating_sub(taken + 1)), None));
        Some(line)
    }
}

/// The effect of a key on the prompt.
enum Edited {
    Typing,
    Cancelled,
    /// The text is complete. Without one, there is no filter.
    Entered(Option<Regex>),
}

impl Prompt {
    fn press(&mut self, key: Key) -> Edited {
        self.problem = None;
        match key {
            Key::Char(letter) if self.text.chars().count() < FILTER_MAX => self.text.push(letter),
            Key::Char(_) => {}
            Key::Backspace => drop(self.text.pop()),
            Key::Erase => self.text.clear(),
            Key::Escape => return Edited::Cancelled,
            Key::Enter if self.text.is_empty() => return Edited::Entered(None),
            Key::Enter => match Regex::new(&self.text) {
                Ok(filter) => return Edited::Entered(Some(filter)),
                Err(error) => self.problem = Some(error.to_string()),
            },
        }
        Edited::Typing
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Presses keys, where `\n` is Enter and `\x1b` is Escape. Returns the last effect.
    fn press(controls: &mut Controls, keys: &str) -> Option<Action> {
        let key = |letter| match letter {
            '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            '\x7f' => Key::Backspace,
            '\x15' => Key::Erase,
            letter => Key::Char(letter),
        };
        keys.chars().map(|letter| controls.press(key(letter))).last().flatten()
    }

    fn shown(controls: &Controls, width: usize) -> String {
        controls.prompt(width).unwrap().into_iter().map(|(piece, _)| piece).collect()
    }

    #[test]
    fn keys_have_their_effects() {
        let mut controls = Controls::default();
        for (keys, expected) in [
            ("q", Some(Action::Quit)),
            ("d", Some(Action::Diff)),
            ("?", Some(Action::Help)),
            ("\n", Some(Action::Space)),
            ("x", None),
            ("\x1b", None),
        ] {
            assert_eq!(press(&mut controls, keys), expected, "{keys:?}");
        }
        assert_eq!((press(&mut controls, " "), controls.paused), (Some(Action::Pause), true));
        assert_eq!((press(&mut controls, " "), controls.paused), (Some(Action::Pause), false));
    }

    #[test]
    fn a_filter_is_typed_applied_changed_and_removed() {
        let mut controls = Controls::default();
        assert!(controls.passes("anything"));
        // In the prompt, letters are letters.
        assert_eq!(press(&mut controls, "/q d?"), Some(Action::Prompt));
        assert_eq!(shown(&controls, 80), "filter names (Enter applies, Esc cancels): q d?");
        assert_eq!(press(&mut controls, "\x15^webb\x7f-\n"), Some(Action::Filter));
        assert!(controls.prompt(80).is_none());
        assert!(controls.passes("web-1") && !controls.passes("my-web-1"));
        assert_eq!(press(&mut controls, "/1\x1b"), Some(Action::Prompt));
        assert!(controls.passes("web-2") && controls.prompt(80).is_none());
        assert_eq!(press(&mut controls, "/\x15\n"), Some(Action::Filter));
        assert!(controls.filter.is_none());
    }

    #[test]
    fn a_filter_that_is_no_expression_stays_in_the_prompt() {
        let mut controls = Controls::default();
        assert_eq!(press(&mut controls, "/web[\n"), Some(Action::Prompt));
        let line = shown(&controls, 200);
        assert!(line.starts_with("filter names (") && line.ends_with("): web["), "{line}");
        assert_eq!(press(&mut controls, "\x7f\n"), Some(Action::Filter));
        assert!(controls.passes("web-1"));
    }

    #[test]
    fn a_filter_is_bounded_and_its_end_is_shown() {
        let mut controls = Controls::default();
        press(&mut controls, &format!("/{}", "a".repeat(FILTER_MAX + 10)));
        let line = shown(&controls, 60);
        assert!(crate::cells::width(&line) < 60 && line.ends_with("…aaaaaaaaaaaaaaa"), "{line}");
        press(&mut controls, "\n");
        assert_eq!(controls.filter.unwrap().as_str().len(), FILTER_MAX);
    }
}
