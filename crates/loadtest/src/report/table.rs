//! Tables in Markdown and HTML.

use super::plot::escape;

/// A table.
#[derive(Debug)]
pub struct Table {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these column heads. In Markdown, a head that begins with `<` belongs to a column of text, which is
    /// aligned left, and the `<` is not shown. All other columns are for numbers.
    pub fn new(heads: &[&str]) -> Table {
        Table { heads: heads.iter().map(|head| (*head).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a row; missing cells at its end are empty.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        let mut cells: Vec<_> = cells.into_iter().collect();
        cells.resize(self.heads.len(), String::new());
        self.rows.push(cells);
    }

    /// The table in Markdown.
    pub fn markdown(self) -> String {
        let names: Vec<_> = self.heads.iter().map(|head| head.trim_start_matches('<')).collect();
        let rules: Vec<_> =
            self.heads.iter().map(|head| if head.starts_with('<') { "---" } else { "---:" }).collect();
        let mut text = format!("| {} |\n| {} |\n", names.join(" | "), rules.join(" | "));
        for row in self.rows {
            // A `|` would end the cell.
            let cells: Vec<_> = row.iter().map(|cell| cell.replace('|', "\\|")).collect();
            text += &format!("| {} |\n", cells.join(" | "));
        }
        text
    }

    /// The table in HTML. In the column `success`, cells below 100% are marked.
    pub(super) fn html(&self) -> String {
        let heads: String = self.heads.iter().map(|head| format!("<th>{}</th>", escape(head))).collect();
        let cell = |(head, cell): (&String, &String)| {
            let class = if head == "success" && cell != "100%" { " class=\"bad\"" } else { "" };
            format!("<td{class}>{}</td>", escape(cell))
        };
        let row = |row: &Vec<String>| {
            let cells: String = self.heads.iter().zip(row).map(cell).collect();
            format!("<tr>{cells}</tr>\n")
        };
        let rows: String = self.rows.iter().map(row).collect();
        format!(
            "<div class=\"scroll\"><table>\n<thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n"
        )
    }
}
