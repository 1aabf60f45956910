//! Images of loaded tools: the memory pages that differ from the snapshot. They are copied over it at every call.

use wasmtime::Error;

/// The page image of one tool. It comes from untrusted code and is used only in the sandbox of the same tool.
#[derive(Debug)]
pub struct Image {
    pages: Vec<(usize, Box<[u8]>)>,
    memory_bytes: usize,
}

impl Image {
    pub fn difference(untouched: &[u8], loaded: &[u8]) -> Self {
        let pages = loaded.chunks(PAGE).enumerate().filter_map(|(index, page)| {
            let start = index * PAGE;
            let same = match untouched.get(start..start + page.len()) {
                Some(before) => before == page,
                None => page.iter().all(|byte| *byte == 0),
            };
            (!same).then(|| (start, Box::from(page)))
        });
        Self { pages: pages.collect(), memory_bytes: loaded.len() }
    }

    pub fn apply_to(&self, memory: &mut [u8]) -> Result<(), Error> {
        for (start, page) in &self.pages {
            match memory.get_mut(*start..*start + page.len()) {
                Some(target) => target.copy_from_slice(page),
                None => wasmtime::bail!("the tool's image does not fit into the memory"),
            }
        }
        Ok(())
    }

    /// The size of the linear memory after loading, in WebAssembly pages.
    pub fn memory_pages(&self) -> u64 {
        (self.memory_bytes / WASM_PAGE) as u64
    }

    /// The memory that this image takes.
    pub fn bytes(&self) -> usize {
        self.pages.len() * PAGE
    }
}

const PAGE: usize = 4096;
const WASM_PAGE: usize = 64 << 10;
