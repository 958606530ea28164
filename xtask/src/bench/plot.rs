//! Plots as hand-written SVG: lines that show growth, and bars.

use super::measures::thousands;
use super::table::{Table, Unit};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 80.0;
const RIGHT: f64 = 220.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// The colours of programs, in drawing order; other programs have no line.
const COLORS: [(&str, &str); 7] = [
    ("ours, packed", "#0b6e4f"),
    ("ours, decoded", "#6bbf59"),
    ("client-go, JSON", "#1f4e9c"),
    ("client-go, JSON, stripped", "#6fa3e0"),
    ("client-go, protobuf, stripped", "#8d6fd1"),
    ("kube-rs, default", "#a63d1e"),
    ("kube-rs, streaming, stripped", "#e8914f"),
];

/// A program, its colour and its points.
type Line<'a> = (&'a str, &'a str, Vec<(f64, f64)>);

/// Draws how a metric grows with the number of pods, with one line per program.
pub(super) fn growth(title: &str, tables: &[(usize, &Table)], metric: &str) -> Option<String> {
    let unit = tables.first()?.1.metrics.iter().find(|known| known.name == metric)?.unit;
    let lines: Vec<Line<'_>> = COLORS
        .iter()
        .map(|(program, color)| {
            let points = tables
                .iter()
                .filter_map(|(pods, table)| Some((*pods as f64, table.value(program, metric)?)));
            (*program, *color, points.collect())
        })
        .filter(|(_, _, points): &(_, _, Vec<_>)| points.len() > 1)
        .collect();
    let all = || lines.iter().flat_map(|(_, _, points)| points);
    let most_pods = all().map(|point| point.0).fold(0.0, f64::max);
    let most = all().map(|point| point.1).fold(0.0, f64::max);
    if most_pods <= 0.0 || most <= 0.0 {
        return None;
    }
    let step = step(most);
    let top = (most / step).ceil() * step;
    let x = |pods: f64| LEFT + pods / most_pods * (WIDTH - LEFT - RIGHT);
    let y = |value: f64| HEIGHT - BOTTOM - value / top * (HEIGHT - TOP - BOTTOM);
    let mut svg = begin(title, HEIGHT);
    let mut value = 0.0;
    while value <= top * 1.001 {
        let at = y(value);
        svg.push_str(&format!(
            "<line x1=\"{LEFT}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\n",
            WIDTH - RIGHT
        ));
        svg.push_str(&label(LEFT - 8.0, at + 4.0, "end", &tick(unit, value)));
        value += step;
    }
    for (pods, _) in tables.iter().filter(|(pods, _)| *pods as f64 >= most_pods / 12.0) {
        let text = thousands(*pods);
        svg.push_str(&label(x(*pods as f64), HEIGHT - BOTTOM + 18.0, "middle", &text));
    }
    svg.push_str(&label((LEFT + WIDTH - RIGHT) / 2.0, HEIGHT - 10.0, "middle", "pods"));
    for (program, color, points) in &lines {
        let path: Vec<String> = points
            .iter()
            .map(|(pods, value)| format!("{:.1},{:.1}", x(*pods), y(*value)))
            .collect();
        svg.push_str(&format!(
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"2\"/>\n",
            path.join(" ")
        ));
        for (pods, value) in points {
            svg.push_str(&format!(
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{color}\"><title>{program}: {}</title></circle>\n",
                x(*pods), y(*value), unit.show(*value)
            ));
        }
    }
    svg.push_str(&legend(
        &lines.iter().map(|(name, color, _)| (*name, *color)).collect::<Vec<_>>(),
    ));
    svg.push_str("</svg>\n");
    Some(svg)
}

/// Draws one bar per program.
pub(super) fn bars(table: &Table, metric: &str) -> Option<String> {
    let unit = table.metrics.iter().find(|known| known.name == metric)?.unit;
    let values: Vec<(&str, f64)> = table
        .rows
        .iter()
        .filter_map(|row| Some((&*row.program, table.value(&row.program, metric)?)))
        .collect();
    let most = values.iter().map(|(_, value)| *value).fold(0.0, f64::max);
    if most <= 0.0 {
        return None;
    }
    let height = TOP + 26.0 * values.len() as f64 + 14.0;
    let mut svg = begin(&format!("{}: {metric}", table.title), height);
    for (number, (program, value)) in values.iter().enumerate() {
        let (at, length) = (TOP + 26.0 * number as f64, value / most * (WIDTH - RIGHT - 110.0));
        let color = match program.split(',').next() {
            Some("ours") => "#0b6e4f",
            Some("client-go") => "#1f4e9c",
            _ => "#a63d1e",
        };
        svg.push_str(&label(RIGHT - 8.0, at + 14.0, "end", program));
        svg.push_str(&format!(
            "<rect x=\"{RIGHT}\" y=\"{at}\" width=\"{length:.1}\" height=\"18\" fill=\"{color}\"/>\n"
        ));
        svg.push_str(&label(RIGHT + length + 6.0, at + 14.0, "start", &unit.show(*value)));
    }
    svg.push_str("</svg>\n");
    Some(svg)
}

fn begin(title: &str, height: f64) -> String {
    // A white background, for readers with a dark theme.
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
         height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n\
         <text x=\"16\" y=\"24\" font-size=\"15\" font-weight=\"bold\">{}</text>\n",
        escaped(title)
    )
}

fn label(x: f64, y: f64, anchor: &str, text: &str) -> String {
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>\n", escaped(text))
}

fn legend(names: &[(&str, &str)]) -> String {
    let mut svg = String::new();
    for (number, (name, color)) in names.iter().enumerate() {
        let (x, y) = (WIDTH - RIGHT + 16.0, TOP + 10.0 + 22.0 * number as f64);
        svg.push_str(&format!(
            "<rect x=\"{x}\" y=\"{:.1}\" width=\"14\" height=\"4\" fill=\"{color}\"/>\n",
            y - 6.0
        ));
        svg.push_str(&label(x + 20.0, y, "start", name));
    }
    svg
}

/// Returns 1, 2 or 5 times a power of ten, about a fifth of the maximum.
fn step(most: f64) -> f64 {
    let rough = most / 5.0;
    let power = 10_f64.powf(rough.log10().floor());
    let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| factor * power >= rough);
    factor.unwrap_or(10.0) * power
}

fn tick(unit: Unit, value: f64) -> String {
    if value == 0.0 {
        "0".to_owned()
    } else {
        unit.show(value).replace(".00 ", " ").replace(".0 ", " ")
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(pods: usize, times: f64) -> Table {
        let mut table = Table::new("x", "Sync <all>", "", &[("CPU", Unit::Seconds)]);
        table.add("ours, packed", &[times * pods as f64 / 1e4]);
        table.add("kube-rs, default", &[7.0 * times * pods as f64 / 1e4]);
        table
    }

    #[test]
    fn lines_grow_from_left_to_right_and_up() {
        let (small, large) = (table(1_000, 1.0), table(10_000, 1.0));
        let svg = growth("CPU", &[(1_000, &small), (10_000, &large)], "CPU").unwrap_or_default();
        assert_eq!(svg.matches("<polyline").count(), 2);
        let points = svg.split("points=\"").nth(1).and_then(|rest| rest.split('"').next());
        let points: Vec<f64> =
            points.unwrap_or_default().split([' ', ',']).filter_map(|n| n.parse().ok()).collect();
        assert!(points[0] < points[2] && points[1] > points[3], "{points:?}");
        assert!(svg.contains("10,000") && svg.ends_with("</svg>\n"));
    }

    #[test]
    fn bars_have_lengths_in_proportion_and_text_that_is_escaped() {
        let svg = bars(&table(10_000, 1.0), "CPU").unwrap_or_default();
        assert!(svg.contains("Sync &lt;all&gt;: CPU"));
        let widths: Vec<f64> = svg
            .split("<rect x=")
            .skip(1)
            .filter_map(|rest| rest.split("width=\"").nth(1)?.split('"').next()?.parse().ok())
            .collect();
        assert_eq!(widths.len(), 2);
        assert!((widths[1] / widths[0] - 7.0).abs() < 0.1, "{widths:?}");
        assert!(bars(&table(0, 1.0), "CPU").is_none());
        assert!(growth("x", &[], "CPU").is_none());
    }

    #[test]
    fn steps_are_round() {
        let steps = [7.4, 0.9, 1.0e9, 23.0].map(|most| step(most).to_string());
        assert_eq!(steps, ["2", "0.2", "200000000", "5"]);
    }
}
