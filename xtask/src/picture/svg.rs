//! The film as an SVG without scripts or fonts, because it is shown in an `<img>`.
//!
//! The frames are placed side by side, and the strip moves behind a window. Without animation, a single frame is
//! visible.

use std::fmt::Write as _;
use std::time::Duration;

use super::film::{Film, Frame};
use super::style::{Colour, Style};
use super::terminal::Row;

/// The width of a character: 0.6 of the font size, as in nearly all monospace fonts.
const WIDTH: f64 = 8.4;
const HEIGHT: f64 = 20.0;
const BASE: f64 = 14.5;
const MARGIN: f64 = 16.0;
const BAR: f64 = 34.0;

/// The terminal's sixteen colours, on a window that is dark on any page.
const COLOURS: [&str; 16] = [
    "#484f58", "#ff7b72", "#3fb950", "#d29922", "#58a6ff", "#bc8cff", "#39c5cf", "#b1bac4",
    "#8b949e", "#ffa198", "#56d364", "#e3b341", "#79c0ff", "#d2a8ff", "#56d4dd", "#ffffff",
];
const GROUND: &str = "#0d1117";
const TEXT: &str = "#e6edf3";

pub(crate) fn draw(film: &Film, rest: Duration) -> String {
    let (columns, rows) = film.size;
    let (inner_width, inner_height) = (columns as f64 * WIDTH, rows as f64 * HEIGHT);
    let (width, height) = (inner_width + 2.0 * MARGIN, inner_height + BAR + MARGIN);
    let mut out = String::new();
    let mut line = |text: &str| {
        out.push_str(text);
        out.push('\n');
    };
    line(&format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" role=\"img\" aria-label=\"A terminal session\">"
    ));
    line(&format!("<style>{}{}</style>", looks(), movement(film, inner_width, rest)));
    line(&format!(
        "<rect x=\".5\" y=\".5\" width=\"{}\" height=\"{}\" rx=\"9\" fill=\"{GROUND}\" stroke=\"#444c56\"/>",
        width - 1.0,
        height - 1.0
    ));
    for (at, colour) in ["#ff5f57", "#febc2e", "#28c840"].into_iter().enumerate() {
        line(&format!("<circle cx=\"{}\" cy=\"17\" r=\"6\" fill=\"{colour}\"/>", 22 + 20 * at));
    }
    line("<defs>");
    for (number, row) in film.rows.iter().enumerate() {
        if let Some(drawn) = draw_row(number, row) {
            line(&drawn);
        }
    }
    line("</defs>");
    line(&format!(
        "<svg x=\"{MARGIN}\" y=\"{BAR}\" width=\"{inner_width}\" height=\"{inner_height}\">"
    ));
    // Renderers without CSS show a still picture, too.
    let still = film.still as f64 * inner_width;
    line(&format!("<g class=\"film\" transform=\"translate({})\">", short(-still)));
    for (number, frame) in film.frames.iter().enumerate() {
        line(&draw_frame(film, number as f64 * inner_width, frame));
    }
    line("</g></svg></svg>");
    out
}

fn looks() -> String {
    let mut css = format!(
        "text{{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace;fill:{TEXT};\
         white-space:pre}}.b{{font-weight:600}}.d{{fill-opacity:.62}}.i{{font-style:italic}}\
         .u{{text-decoration:underline}}"
    );
    for (number, colour) in COLOURS.iter().enumerate() {
        let _ = write!(css, ".c{number}{{fill:{colour}}}");
    }
    css
}

/// Makes the strip jump from frame to frame.
fn movement(film: &Film, step: f64, rest: Duration) -> String {
    let last = film.frames.len() - 1;
    let total = film.frames[last].at + rest;
    let place =
        |number: usize| format!("transform:translateX({}px)", short(-(number as f64) * step));
    let mut css = format!(
        ".film{{animation:film {}s step-end infinite}}@media(prefers-reduced-motion:reduce){{.film{{animation:none}}}}\
         @keyframes film{{",
        short(total.as_secs_f64())
    );
    for (number, frame) in film.frames.iter().enumerate() {
        let share =
            if number == 0 { 0.0 } else { frame.at.as_secs_f64() / total.as_secs_f64() * 100.0 };
        let _ = write!(css, "{}%{{{}}}", short(share), place(number));
    }
    let _ = write!(css, "100%{{{}}}}}", place(last));
    css
}

fn draw_frame(film: &Film, x: f64, frame: &Frame) -> String {
    let mut out = format!("<g transform=\"translate({})\">", short(x));
    if let Some((row, column)) = frame.cursor {
        let _ = write!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"{TEXT}\" fill-opacity=\".55\"/>",
            short(column as f64 * WIDTH),
            row as f64 * HEIGHT
        );
    }
    for (place, row) in frame.rows.iter().enumerate() {
        if runs(&film.rows[*row]).next().is_some() {
            let _ = write!(out, "<use href=\"#r{row}\" y=\"{}\"/>", place as f64 * HEIGHT);
        }
    }
    out.push_str("</g>");
    out
}

/// Defines a row, to be used wherever it is shown, unless it is empty.
fn draw_row(number: usize, row: &Row) -> Option<String> {
    let mut grounds = String::new();
    let mut text = String::new();
    for run in runs(row) {
        let (front, back) = run.colours();
        let x = short(run.column as f64 * WIDTH);
        if let Some(back) = back {
            let width = short(run.columns as f64 * WIDTH);
            let _ = write!(
                grounds,
                "<rect x=\"{x}\" width=\"{width}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
            );
        }
        let letters = run.text.trim_start();
        if !letters.is_empty() {
            let spaces = run.text.len() - letters.len();
            let x = short((run.column + spaces) as f64 * WIDTH);
            let look = look(run.style, front.as_deref());
            let _ = write!(text, "<tspan x=\"{x}\"{look}>{}</tspan>", escape(letters.trim_end()));
        }
    }
    if grounds.is_empty() && text.is_empty() {
        return None;
    }
    Some(format!("<g id=\"r{number}\">{grounds}<text y=\"{BASE}\">{text}</text></g>"))
}

/// Adjacent characters with the same style.
struct Run {
    column: usize,
    columns: usize,
    text: String,
    style: Style,
}

impl Run {
    /// Returns the colours of text and background, if they are not the defaults.
    fn colours(&self) -> (Option<String>, Option<String>) {
        let (front, back) = (colour(self.style.front), colour(self.style.back));
        if self.style.inverse {
            return (back.or(Some(GROUND.to_owned())), front.or(Some(TEXT.to_owned())));
        }
        (front, back)
    }
}

/// Splits a row into runs. Two spaces end a run without a background, so that columns stay aligned in fonts that are
/// slightly narrower or wider.
fn runs(row: &Row) -> impl Iterator<Item = Run> {
    let mut found: Vec<Run> = Vec::new();
    let mut spaces = 0;
    for (column, cell) in row.0.iter().enumerate() {
        let plain =
            cell.style.back == Colour::Default && !cell.style.inverse && !cell.style.underline;
        if cell.character == ' ' && plain {
            spaces += 1;
            continue;
        }
        match found.last_mut() {
            Some(run) if run.style == cell.style && spaces < 2 => {
                run.text.extend(std::iter::repeat_n(' ', spaces));
                run.text.push(cell.character);
                run.columns += spaces + 1;
            }
            _ => found.push(Run {
                column,
                columns: 1,
                text: cell.character.into(),
                style: cell.style,
            }),
        }
        spaces = 0;
    }
    found.into_iter()
}

fn look(style: Style, front: Option<&str>) -> String {
    let mut classes = Vec::new();
    let mut fill = String::new();
    match (style.front, style.inverse) {
        (Colour::Named(number), false) => classes.push(format!("c{number}")),
        _ => {
            if let Some(front) = front {
                fill = format!(" fill=\"{front}\"");
            }
        }
    }
    let flags = [(style.bold, "b"), (style.dim, "d"), (style.italic, "i"), (style.underline, "u")];
    classes.extend(flags.iter().filter(|(on, _)| *on).map(|(_, class)| (*class).to_owned()));
    if classes.is_empty() { fill } else { format!(" class=\"{}\"{fill}", classes.join(" ")) }
}

fn colour(colour: Colour) -> Option<String> {
    match colour {
        Colour::Default => None,
        Colour::Named(number) => COLOURS.get(usize::from(number)).map(|text| (*text).to_owned()),
        Colour::Rgb(red, green, blue) => Some(format!("#{red:02x}{green:02x}{blue:02x}")),
    }
}

/// Escapes text for XML, and drops characters that XML does not allow.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

/// Formats a number with two decimals, which is more than a screen shows.
fn short(number: f64) -> String {
    let text = format!("{number:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests;
