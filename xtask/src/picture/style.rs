//! The style of characters, as set by `ESC [ … m`.

/// One of the terminal's sixteen colours, or any other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Colour {
    #[default]
    Default,
    Named(u8),
    Rgb(u8, u8, u8),
}

/// The style of one character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "they are as independent as the terminal has them"
)]
pub(crate) struct Style {
    pub(crate) front: Colour,
    pub(crate) back: Colour,
    pub(crate) bold: bool,
    pub(crate) dim: bool,
    pub(crate) italic: bool,
    pub(crate) underline: bool,
    pub(crate) inverse: bool,
}

impl Style {
    /// Applies the numbers of one sequence; unknown ones are ignored.
    pub(crate) fn apply(&mut self, numbers: &[u16]) {
        let mut rest = numbers.iter().copied();
        while let Some(number) = rest.next() {
            match number {
                0 => *self = Self::default(),
                1 => self.bold = true,
                2 => self.dim = true,
                3 => self.italic = true,
                4 => self.underline = true,
                7 => self.inverse = true,
                22 => (self.bold, self.dim) = (false, false),
                23 => self.italic = false,
                24 => self.underline = false,
                27 => self.inverse = false,
                30..=37 => self.front = Colour::Named((number - 30) as u8),
                38 => self.front = extended(&mut rest).unwrap_or(self.front),
                39 => self.front = Colour::Default,
                40..=47 => self.back = Colour::Named((number - 40) as u8),
                48 => self.back = extended(&mut rest).unwrap_or(self.back),
                49 => self.back = Colour::Default,
                90..=97 => self.front = Colour::Named((number - 90 + 8) as u8),
                100..=107 => self.back = Colour::Named((number - 100 + 8) as u8),
                _ => {}
            }
        }
    }
}

/// Parses `5;n`, one of 256 colours, or `2;r;g;b`.
fn extended(rest: &mut impl Iterator<Item = u16>) -> Option<Colour> {
    let byte = |number: u16| u8::try_from(number).ok();
    match rest.next()? {
        5 => Some(of_256(byte(rest.next()?)?)),
        2 => Some(Colour::Rgb(byte(rest.next()?)?, byte(rest.next()?)?, byte(rest.next()?)?)),
        _ => None,
    }
}

/// Returns one of the 256 colours: sixteen named ones, a cube with six steps per side, and greys.
fn of_256(number: u8) -> Colour {
    let step = |level: u8| if level == 0 { 0 } else { 55 + 40 * level };
    match number {
        0..=15 => Colour::Named(number),
        16..=231 => {
            let cube = number - 16;
            Colour::Rgb(step(cube / 36), step(cube / 6 % 6), step(cube % 6))
        }
        232..=255 => {
            let grey = 8 + 10 * (number - 232);
            Colour::Rgb(grey, grey, grey)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(numbers: &[u16]) -> Style {
        let mut style = Style::default();
        style.apply(numbers);
        style
    }

    #[test]
    fn looks_add_up_and_are_taken_back() {
        let bold_red = Style { bold: true, front: Colour::Named(1), ..Style::default() };
        assert_eq!(after(&[1, 31]), bold_red);
        assert_eq!(after(&[1, 2, 3, 4, 7, 31, 42, 22, 23, 24, 27, 39, 49]), Style::default());
        assert_eq!(after(&[1, 31, 0]), Style::default());
        assert_eq!(after(&[94]).front, Colour::Named(12));
        assert_eq!(after(&[101]).back, Colour::Named(9));
    }

    #[test]
    fn colours_beyond_sixteen() {
        assert_eq!(after(&[38, 5, 9]).front, Colour::Named(9));
        assert_eq!(after(&[38, 5, 208]).front, Colour::Rgb(255, 135, 0));
        assert_eq!(after(&[48, 5, 255]).back, Colour::Rgb(238, 238, 238));
        assert_eq!(after(&[38, 2, 1, 2, 3, 1]).front, Colour::Rgb(1, 2, 3));
        for broken in [&[38][..], &[38, 5], &[38, 2, 1], &[38, 5, 300], &[38, 9], &[4000]] {
            assert_eq!(after(broken), Style::default());
        }
    }
}
