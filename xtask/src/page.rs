//! `cargo xtask page`: tests the debug page in a real browser, and takes its pictures.

mod browser;
mod checks;
mod server;

use std::fs;
use std::path::{Path, PathBuf};

use browser::Browser;
use server::Server;

const DIRECTORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../target/page");

/// The README's picture of the page.
const PICTURE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/debug-page.png");

/// Browsers that speak the `DevTools` protocol, by their usual names.
const BROWSERS: [&str; 4] =
    ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The README should load on a slow connection.
const PICTURE_BYTES_MAX: usize = 200_000;

pub(crate) fn run(arguments: &[String]) -> Result<(), String> {
    let update = match arguments {
        [] => false,
        [update] if update == "--picture" => true,
        _ => return Err("usage: cargo xtask page [--picture]".to_owned()),
    };
    let program = browser().ok_or_else(|| {
        format!("there is no browser: none of {} is on the PATH", BROWSERS.join(", "))
    })?;
    let directory = Path::new(DIRECTORY);
    fs::create_dir_all(directory).map_err(|error| format!("cannot create {DIRECTORY}: {error}"))?;
    let server = Server::start(directory)?;
    let mut browser = Browser::start(&program, directory)?;
    let outcome = checks::run(&mut browser, &server);
    // What the page showed last explains a failure best.
    let last = browser.screenshot().and_then(|png| write(&directory.join("last.png"), &png));
    let pictures = outcome.and_then(|pictures| last.map(|()| pictures))?;
    for (name, png) in &pictures {
        write(&directory.join(name), png)?;
    }
    if update {
        let (_, png) =
            pictures.iter().find(|(name, _)| *name == checks::README).ok_or("no picture")?;
        if png.len() > PICTURE_BYTES_MAX {
            return Err(format!(
                "the picture has {} bytes: at most {PICTURE_BYTES_MAX}",
                png.len()
            ));
        }
        write(Path::new(PICTURE), png)?;
    }
    println!("the page passed in {}; pictures are in target/page", program.display());
    Ok(())
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), String> {
    fs::write(path, bytes).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let found = BROWSERS.iter().flat_map(|name| places.iter().map(move |place| place.join(name)));
    found.into_iter().find(|program| program.is_file())
}
