//! Reads and writes the chunks of a PNG file: enough to read mGBA's savestates and to add a text to them.
//!
//! A PNG file has a signature of eight bytes, then chunks. Each chunk has a big-endian length, four letters for its
//! kind, the data, and the CRC-32 of the letters and the data.

pub(crate) const SIGNATURE: &[u8; 8] = b"\x89PNG\r\n\x1a\n";

/// The number of bytes in a chunk that are not data: length, kind and checksum.
const FRAME: usize = 12;

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PngError {
    #[error("it does not begin like a PNG file")]
    Signature,
    #[error("the PNG file ends within a chunk")]
    Cut,
    #[error("a chunk of the PNG file has a wrong checksum")]
    Checksum,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunk<'a> {
    pub kind: [u8; 4],
    pub data: &'a [u8],
    /// The whole chunk, with length, kind and checksum.
    pub whole: &'a [u8],
}

/// Iterates over the chunks in order and checks their checksums. Ends after the chunk `IEND`, or with the first error.
pub(crate) struct Chunks<'a> {
    rest: &'a [u8],
    over: bool,
}

pub(crate) fn chunks(file: &[u8]) -> Result<Chunks<'_>, PngError> {
    let rest = file.strip_prefix(SIGNATURE).ok_or(PngError::Signature)?;
    Ok(Chunks { rest, over: false })
}

impl<'a> Chunks<'a> {
    fn chunk(&mut self) -> Result<Chunk<'a>, PngError> {
        let (length, _) = self.rest.split_first_chunk::<4>().ok_or(PngError::Cut)?;
        let length = u32::from_be_bytes(*length) as usize;
        let (whole, rest) = self.rest.split_at_checked(length.saturating_add(FRAME)).ok_or(PngError::Cut)?;
        self.rest = rest;
        let (body, checksum) = whole[4..].split_at(4 + length);
        if crc32fast::hash(body).to_be_bytes() != checksum {
            return Err(PngError::Checksum);
        }
        Ok(Chunk { kind: [body[0], body[1], body[2], body[3]], data: &body[4..], whole })
    }
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, PngError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.over {
            return None;
        }
        let chunk = self.chunk();
        self.over = chunk.as_ref().map_or(true, |chunk| &chunk.kind == b"IEND");
        Some(chunk)
    }
}

/// The bytes of a chunk with this kind and data.
pub(crate) fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() + FRAME);
    bytes.extend((data.len() as u32).to_be_bytes());
    bytes.extend(kind);
    bytes.extend(data);
    let checksum = crc32fast::hash(&bytes[4..]);
    bytes.extend(checksum.to_be_bytes());
    bytes
}

/// An uncompressed international text chunk: `keyword` and UTF-8 text.
pub(crate) fn text_chunk(keyword: &str, text: &str) -> Vec<u8> {
    let mut data = keyword.as_bytes().to_vec();
    // The end of the keyword, the compression flag (off) and method, no language, no translated keyword.
    data.extend([0; 5]);
    data.extend(text.as_bytes());
    chunk(b"iTXt", &data)
}

/// The text of a chunk that [`text_chunk`] made with this keyword; `None` for any other chunk.
pub(crate) fn text_of<'a>(chunk: &Chunk<'a>, keyword: &str) -> Option<&'a [u8]> {
    if &chunk.kind != b"iTXt" {
        return None;
    }
    chunk.data.strip_prefix(keyword.as_bytes())?.strip_prefix(&[0; 5])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(chunks: &[Vec<u8>]) -> Vec<u8> {
        [SIGNATURE.to_vec(), chunks.concat()].concat()
    }

    #[test]
    fn chunks_are_read_up_to_iend() {
        let bytes = file(&[text_chunk("k", "tëxt"), chunk(b"IEND", b""), b"more".to_vec()]);
        let found: Vec<_> = chunks(&bytes).unwrap().map(Result::unwrap).collect();
        assert_eq!(found.len(), 2);
        assert_eq!(text_of(&found[0], "k"), Some("tëxt".as_bytes()));
        assert_eq!(text_of(&found[0], "other"), None);
    }

    #[test]
    fn truncated_and_changed_files_are_detected() {
        let bytes = file(&[chunk(b"abcd", b"data"), chunk(b"IEND", b"")]);
        for end in 8..bytes.len() {
            assert_eq!(chunks(&bytes[..end]).unwrap().last(), Some(Err(PngError::Cut)), "{end}");
        }
        for at in 8..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(chunks(&changed).unwrap().any(|chunk| chunk.is_err()), "{at}");
        }
        assert!(chunks(b"GIF89a").is_err());
    }
}
