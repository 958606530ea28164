//! The file format: a line with the version of the format, then a zstd frame with a checksum, which holds the
//! manifest and the objects.
//!
//! Whatever the file contains, reading it neither panics nor takes more memory than its content. Nothing of it
//! is used before its end has been read and the checksum verified.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::path::Path;

use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use super::{Manifest, record, unusable};
use crate::object::Packer;
use crate::wire::OBJECT_BYTES_MAX;
use crate::{Error, Object, Result};

/// A change of the format changes the number.
const FORMAT: &[u8] = b"kube-informer snapshot 1\n";
/// Fast, and still compresses to a tenth.
const LEVEL: i32 = 1;
/// The working memory that a frame may ask for: 8 MiB, more than is needed at this level.
const WINDOW_LOG_MAX: u32 = 23;
/// More than any manifest has.
const MANIFEST_BYTES_MAX: u64 = 1 << 20;
/// More than any dictionary has.
const DICTIONARY_BYTES_MAX: u64 = 1 << 20;
/// An object, with a generous allowance for its header.
const RECORD_BYTES_MAX: u64 = (OBJECT_BYTES_MAX + (1 << 20)) as u64;

/// Writes a temporary file beside the target, and renames it.
pub(super) fn write(
    path: &Path,
    manifest: &Manifest,
    objects: &[Object],
    packer: &Packer,
) -> Result<()> {
    let cannot = |error: io::Error| {
        unusable(format!("the snapshot cannot be written to {}: {error}", path.display()))
            .caused_by(error)
    };
    let name = path.file_name().ok_or_else(|| cannot(ErrorKind::IsADirectory.into()))?;
    let mut beside = name.to_owned();
    beside.push(format!(".{:016x}.new", fastrand::u64(..)));
    let beside = path.with_file_name(beside);
    let written =
        write_new(&beside, manifest, objects, packer).and_then(|()| fs::rename(&beside, path));
    if let Err(error) = written {
        // A partial file is of no use.
        let _ = fs::remove_file(&beside);
        return Err(cannot(error));
    }
    Ok(())
}

fn write_new(
    path: &Path,
    manifest: &Manifest,
    objects: &[Object],
    packer: &Packer,
) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = BufWriter::new(options.open(path)?);
    file.write_all(FORMAT)?;
    let mut frame = Encoder::new(file, LEVEL)?;
    frame.include_checksum(true)?;
    put(&mut frame, &serde_json::to_vec(manifest)?)?;
    let codec = packer.codec();
    put(&mut frame, codec.trained())?;
    let mut bytes = Vec::new();
    for object in objects {
        record::write(object, &codec, &mut bytes)?;
        put(&mut frame, &bytes)?;
    }
    let file = frame.finish()?.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.sync_all()
}

/// Reads a snapshot; `None` if there is no file.
pub(super) fn read(path: &Path, packer: &Packer) -> Result<Option<(Manifest, Vec<Object>)>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(damaged(path, &error.into())),
    };
    let read = read_from(BufReader::new(file), packer);
    read.map(Some).map_err(|problem| damaged(path, &problem))
}

/// The reason why a file cannot be used.
pub(super) enum Problem {
    Io(io::Error),
    Other(&'static str),
    Object(Error),
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn damaged(path: &Path, problem: &Problem) -> Error {
    let why = match problem {
        Problem::Io(error) => format!("cannot be read: {error}"),
        Problem::Other(why) => (*why).to_owned(),
        Problem::Object(error) => format!("is damaged: {error}"),
    };
    unusable(format!("the snapshot {} {why}", path.display()))
}

fn read_from(
    mut file: impl io::BufRead,
    packer: &Packer,
) -> Result<(Manifest, Vec<Object>), Problem> {
    let mut format = [0; FORMAT.len()];
    file.read_exact(&mut format).map_err(|_| Problem::Other("is not a snapshot"))?;
    if format != FORMAT {
        return Err(Problem::Other("is not a snapshot, or has an unsupported format"));
    }
    let mut frame = Decoder::with_buffer(file)?.single_frame();
    frame.window_log_max(WINDOW_LOG_MAX)?;
    let mut frame = BufReader::new(frame);
    let mut bytes = Vec::new();
    take(&mut frame, &mut bytes, MANIFEST_BYTES_MAX)?;
    let manifest: Manifest =
        serde_json::from_slice(&bytes).map_err(|_| Problem::Other("has an invalid manifest"))?;
    take(&mut frame, &mut bytes, DICTIONARY_BYTES_MAX)?;
    let codec = match &bytes[..] {
        [] => packer.codec(),
        trained => {
            packer.restore_codec(trained).ok_or(Problem::Other("has an invalid dictionary"))?
        }
    };
    let mut objects = Vec::new();
    for _ in 0..manifest.objects {
        take(&mut frame, &mut bytes, RECORD_BYTES_MAX)?;
        objects.push(record::read(&bytes, packer, &codec)?);
    }
    // Reading to the end verifies the checksum, and nothing may follow it.
    if frame.read(&mut [0])? != 0 {
        return Err(Problem::Other("has more objects than its manifest says"));
    }
    let mut file = frame.into_inner().finish();
    if file.read(&mut [0])? != 0 {
        return Err(Problem::Other("has data after its end"));
    }
    Ok((manifest, objects))
}

/// Writes a length and that many bytes. `u32` is longer than any object.
pub(super) fn put(frame: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    frame.write_all(&(bytes.len() as u32).to_le_bytes())?;
    frame.write_all(bytes)
}

/// Reads a length and that many bytes. Memory grows with the bytes that are present, not with the
/// claimed length.
fn take(frame: &mut impl Read, bytes: &mut Vec<u8>, max: u64) -> Result<(), Problem> {
    let mut length = [0; 4];
    frame.read_exact(&mut length)?;
    let length = u64::from(u32::from_le_bytes(length));
    if length > max {
        return Err(Problem::Other("has a part that is too long"));
    }
    bytes.clear();
    if frame.take(length).read_to_end(bytes)? as u64 != length {
        return Err(Problem::Io(ErrorKind::UnexpectedEof.into()));
    }
    Ok(())
}
