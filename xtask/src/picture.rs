//! `cargo xtask picture`: records a run of the tool in a terminal, as an animated SVG.

mod film;
mod options;
mod record;
mod scene;
mod style;
mod svg;
mod terminal;

use std::fs;
use std::time::Duration;

use film::Film;
use options::Options;
use record::Recording;
use scene::Scene;

/// Browsers and GitHub accept more, but it should load on a slow connection.
const BYTES_MAX: usize = 150_000;

/// Changes closer together than this form one frame; the interval grows if the picture becomes too large.
const FRAME_MIN: Duration = Duration::from_millis(80);

/// How long the last frame is shown before the animation restarts.
const REST: Duration = Duration::from_secs(4);

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let mut options = Options::parse(arguments)?;
    let scene = if options.command.is_empty() { Some(Scene::set()?) } else { None };
    if let Some(scene) = &scene {
        options.command = scene.command();
    }
    let mut recording = Recording::typed(&options.typed);
    recording.record(&options.command, options.size, options.length)?;
    let picture = draw(&recording, options.size)?;
    fs::write(&options.output, &picture)
        .map_err(|error| format!("cannot write {}: {error}", options.output.display()))?;
    println!("{} has {} bytes", options.output.display(), picture.len());
    Ok(())
}

/// Draws the picture with as many frames as fit.
fn draw(recording: &Recording, size: (usize, usize)) -> Result<String, String> {
    let mut interval = FRAME_MIN;
    loop {
        let film = Film::of(recording, size, interval);
        let picture = svg::draw(&film, REST);
        if picture.len() <= BYTES_MAX {
            return Ok(picture);
        }
        if film.frames.len() < 2 {
            return Err(format!(
                "one frame alone has more than {BYTES_MAX} bytes: take a smaller terminal"
            ));
        }
        interval = interval * 3 / 2;
    }
}

#[cfg(test)]
mod tests {
    use rustix::process::Signal;

    use super::*;

    #[test]
    fn a_picture_that_is_too_large_gets_fewer_frames() {
        let mut recording = Recording::default();
        for second in 0..100 {
            let text: String =
                (0..2_000).map(|at| char::from(b'a' + ((at * 7 + second) % 26) as u8)).collect();
            recording.push(Duration::from_millis(100 * second), text.as_bytes());
        }
        let picture = draw(&recording, (100, 24)).unwrap();
        assert!(picture.len() <= BYTES_MAX && picture.len() > BYTES_MAX / 4, "{}", picture.len());
    }

    #[test]
    fn a_command_is_recorded_and_drawn() {
        let script = [
            "sh",
            "-c",
            "printf 'one \\033[31mred\\033[0m\\n'; stty size; tty >/dev/null && echo yes",
        ];
        let mut recording = Recording::typed("demo");
        recording.record(&script.map(str::to_owned), (60, 8), Duration::from_secs(60)).unwrap();
        let film = Film::of(&recording, (60, 8), FRAME_MIN);
        let last = film.frames.last().unwrap();
        let text: Vec<String> = last.rows.iter().map(|row| film.rows[*row].text()).collect();
        assert_eq!(text[..4], ["$ demo", "one red", "8 60", "yes"]);
    }

    /// Returns whether this process was started with SIGINT ignored, as scripts do for background jobs. Child
    /// processes inherit that, and a shell cannot trap an ignored signal.
    fn interrupts_are_ignored() -> bool {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        let signals = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
        signals.is_some_and(|mask| mask & (1 << (Signal::INT.as_raw() - 1)) != 0)
    }

    #[test]
    fn a_command_that_does_not_end_is_interrupted() {
        // The script prints a line when it is ready for the signal, and its time starts then.
        let script =
            ["sh", "-c", "trap 'echo bye; exit' INT; echo begun; while :; do sleep 0.01; done"];
        let mut recording = Recording::default();
        recording.record(&script.map(str::to_owned), (40, 4), Duration::from_millis(1)).unwrap();
        let film = Film::of(&recording, (40, 4), FRAME_MIN);
        let last = film.frames.last().unwrap();
        assert!(recording.interrupted.is_some());
        let farewell = if interrupts_are_ignored() { "" } else { "bye" };
        assert_eq!(film.rows[last.rows[1]].text(), farewell);
        let missing =
            Recording::default().record(&["/no/such".to_owned()], (40, 4), Duration::ZERO);
        assert!(missing.unwrap_err().starts_with("cannot run /no/such: "));
    }
}
