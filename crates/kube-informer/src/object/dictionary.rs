//! zstd with a dictionary: what many bodies have in common, kept once.

use parking_lot::Mutex;
use zstd_safe::{CCtx, CDict, CompressionLevel, DCtx, DDict};

/// More makes the dictionary of an informer larger and hardly any body smaller.
const DICTIONARY_BYTES_MAX: usize = 32 << 10;
/// Training takes 20 ms, and 30 ms more for each MiB. Four times as much makes no body of a pod smaller.
const TRAINING_BYTES_MAX: usize = 256 << 10;
/// Of a longer body only the beginning is trained on: one body must not be all of the training.
const SAMPLE_BYTES_MAX: usize = 32 << 10;
/// Level 3 makes the body of a pod 5 % smaller and the prepared dictionary 350 KB larger.
const LEVEL: CompressionLevel = 1;
/// Unused contexts that are kept, for threads that pack and unpack at the same time: 180 KB each.
const CONTEXTS_MAX: usize = 4;
/// More than any object that is read from a server has.
const TEXT_BYTES_MAX: u64 = 65 << 20;
/// A larger output buffer is not kept with its context.
const OUTPUT_BYTES_MAX: usize = 256 << 10;

/// A trained dictionary, prepared for both directions: about 170 KB.
pub(super) struct Dictionary {
    compress: CDict<'static>,
    decompress: DDict<'static>,
    /// The bytes that both were prepared from.
    trained: Box<[u8]>,
}

impl Dictionary {
    /// Trains on these texts; `None` if they have too little in common, or are too few.
    pub(super) fn train(texts: &[impl AsRef<[u8]>]) -> Option<Self> {
        let cut = |text: &[u8]| text.len().min(SAMPLE_BYTES_MAX);
        let total: usize = texts.iter().map(|text| cut(text.as_ref())).sum();
        // Spread over all of them: lists are sorted, and neighbours are alike.
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

    /// One that was trained before; `None` if it is none.
    pub(super) fn of(trained: Box<[u8]>) -> Option<Self> {
        let (compress, decompress) =
            (CDict::try_create(&trained, LEVEL)?, DDict::try_create(&trained)?);
        Some(Self { compress, decompress, trained })
    }

    /// The bytes from which [`of`](Self::of) makes the same dictionary.
    pub(super) fn trained(&self) -> &[u8] {
        &self.trained
    }

    /// The text as a frame; `None` if that saves less than a quarter.
    pub(super) fn pack(&self, text: &[u8]) -> Option<Box<[u8]>> {
        with_context(|Context { compressor, output, .. }| {
            output.clear();
            output.reserve(zstd_safe::compress_bound(text.len()));
            compressor.compress_using_cdict(output, text, &self.compress).ok()?;
            (output.len() <= text.len() / 4 * 3).then(|| output.as_slice().into())
        })
    }

    /// The text of a frame, or what zstd says is wrong with it.
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

/// Lends a context, one of a few that the whole process shares.
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
