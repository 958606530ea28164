//! Compression with zstd and a dictionary, which holds the content that many bodies have in common.

use parking_lot::Mutex;
use zstd_safe::{CCtx, CDict, CompressionLevel, DCtx, DDict};

/// A larger dictionary makes hardly any body smaller.
const DICTIONARY_BYTES_MAX: usize = 32 << 10;
/// Training takes 20 ms, plus 30 ms per MiB. Four times as much makes no pod's body smaller.
const TRAINING_BYTES_MAX: usize = 256 << 10;
/// Only the beginning of a longer body is used for training, so that one body does not dominate it.
const SAMPLE_BYTES_MAX: usize = 32 << 10;
/// Level 3 would make a pod's body 5 % smaller, and the prepared dictionary 350 KB larger.
const LEVEL: CompressionLevel = 1;
/// The number of unused contexts, of 180 KB each, that are kept for threads that pack and unpack concurrently.
const CONTEXTS_MAX: usize = 4;
/// More than any object that is read from a server.
const TEXT_BYTES_MAX: u64 = 65 << 20;
/// A larger output buffer is not kept with its context.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// A trained dictionary, prepared for both directions. Takes about 170 KB.
pub(super) struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
    /// The bytes that both were prepared from.
    trained: Box<[u8]>,
}

impl Dictionary {
    /// Trains a dictionary on these texts. Returns `None` if they are too few or have too little in common.
    pub(super) fn train(texts: &[impl AsRef<[u8]>]) -> Option<Self> {
        let cut = |text: &[u8]| text.len().min(SAMPLE_BYTES_MAX);
        let total: usize = texts.iter().map(|text| cut(text.as_ref())).sum();
        // Samples are spread evenly: lists are sorted, and neighbours are alike.
        let step = total.div_ceil(TRAINING_BYTES_MAX).max(1);
        let (mut samples, mut sizes) = (Vec::new(), Vec::new());
        for text in texts.iter().step_by(step) {
            let text = text.as_ref();
            let sample = &text[..cut(text)];
            samples.extend_from_slice(sample);
            sizes.push(sample.len());
        }
        let mut trained = Vec::with_capacity(DICTIONARY_BYTES_MAX);
        zstd_safe::train_from_buffer(&mut trained, &samples, &sizes).ok()?;
        Self::of(trained.into())
    }

    /// Prepares a dictionary that was trained before. Returns `None` if the bytes are not a dictionary.
    pub(super) fn of(trained: Box<[u8]>) -> Option<Self> {
        let (compress, decompress) =
            (CDict::try_create(&trained, LEVEL)?, DDict::try_create(&trained)?);
        Some(Self { compress, decompress, trained })
    }

    /// Returns the bytes from which [`of`](Self::of) prepares the same dictionary.
    pub(super) fn trained(&self) -> &[u8] {
        &self.trained
    }

    /// Packs a text into a frame. Returns `None` if that saves less than a quarter.
    pub(super) fn pack(&self, text: &[u8]) -> Option<Box<[u8]>> {
        with_context(|Context { compressor, output, .. }| {
            output.clear();
            output.reserve(zstd_safe::compress_bound(text.len()));
            compressor.compress_using_cdict(output, text, &self.compress).ok()?;
            (output.len() <= text.len() / 4 * 3).then(|| output.as_slice().into())
        })
    }

    /// Returns the text of a frame, or zstd's error.
    pub(super) fn unpack(&self, frame: &[u8]) -> Result<Vec<u8>, &'static str> {
        let size = zstd_safe::get_frame_content_size(frame).ok().flatten();
        let size = size.ok_or("a frame without its size")?;
        if size > TEXT_BYTES_MAX {
            return Err("a frame that claims to be longer than any object");
        }
        let mut text = Vec::with_capacity(size as usize);
        with_context(|Context { decompressor, .. }| {
            decompressor
                .decompress_using_ddict(&mut text, frame, &self.decompress)
                .map_err(zstd_safe::get_error_name)
        })?;
        Ok(text)
    }
}

/// The working memory of zstd, for use with any dictionary.
struct Context {
    compressor: CCtx<'static>,
    decompressor: DCtx<'static>,
    output: Vec<u8>,
}

/// Lends one of the few contexts that the whole process shares.
fn with_context<T>(work: impl FnOnce(&mut Context) -> T) -> T {
    static UNUSED: Mutex<Vec<Context>> = Mutex::new(Vec::new());
    let unused = UNUSED.lock().pop();
    let mut context = unused.unwrap_or_else(|| Context {
        compressor: CCtx::create(),
        decompressor: DCtx::create(),
        output: Vec::new(),
    });
    let done = work(&mut context);
    if context.output.capacity() > OUTPUT_BYTES_MAX {
        context.output = Vec::new();
    }
    let mut unused = UNUSED.lock();
    if unused.len() < CONTEXTS_MAX {
        unused.push(context);
    }
    done
}

#[cfg(test)]
mod tests;
