//! Tables in Markdown.

/// A table.
#[derive(Debug)]
pub struct Table {
    columns: usize,
    text: String,
}

impl Table {
    /// With these heads. A head that begins with `<` is of a column of text, aligned left; the others are of numbers.
    pub fn new(heads: &[&str]) -> Table {
        let names: Vec<_> = heads.iter().map(|head| head.trim_start_matches('<')).collect();
        let rules: Vec<_> =
            heads.iter().map(|head| if head.starts_with('<') { "---" } else { "---:" }).collect();
        let text = format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
        Table { columns: heads.len(), text }
    }

    /// Adds a row; missing cells at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        // A `|` would end the cell.
        let mut cells: Vec<_> = cells.into_iter().map(|cell| cell.replace('|', "\\|")).collect();
        cells.resize(self.columns, String::new());
        self.text += &format!("| {} |\n", cells.join(" | "));
    }

    /// Its text.
    pub fn finish(self) -> String {
        self.text
    }
}
