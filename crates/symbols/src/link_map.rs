//! The link map of GNU ld (`-Map`), which lists the address of each symbol.
//!
//! A global symbol has a line `ADDRESS NAME`. A `static` variable has no such line. But if the program was compiled
//! with `-fdata-sections`, the variable has its own section, with a line `.bss.NAME ADDRESS SIZE FILE`. If the name is
//! long, ld puts the rest of this line on the next line.

/// The map begins after this line. The part before it lists the sections that ld discarded, which are not in the
/// program.
const BEGIN: &str = "Linker script and memory map";

/// The prefixes of sections with one variable or function. [`own_name`] returns its name.
const SECTIONS: [&str; 7] = [".bss.", ".data.", ".rodata.", ".text.", ".iwram.", ".ewram.", ".sbss."];

/// What GCC writes before the name of a function, depending on when and how often the function runs. (`unlikely.` is
/// not in this list, because a section with it can be only a part of the function.)
const GROUPS: [&str; 3] = ["startup.", "hot.", "exit."];

pub(crate) fn is_link_map(text: &str) -> bool {
    text.contains(BEGIN)
}

/// The symbols of a link map: first those with a line `ADDRESS NAME`, then those that have their own section.
pub(crate) fn symbols(text: &str) -> impl Iterator<Item = (&str, u32)> {
    let map = text.split_once(BEGIN).map_or("", |(_, map)| map);
    map.lines().filter_map(symbol).chain(sections(map))
}

/// Parses a line such as `                0x02000044                score`. After the name, it may have `=` and an
/// expression.
fn symbol(line: &str) -> Option<(&str, u32)> {
    let mut words = line.split_whitespace();
    let address = address(words.next()?)?;
    let name = words.next().filter(|name| is_name(name))?;
    let plain = words.next().is_none_or(|next| next == "=");
    if line.starts_with(' ') && plain { Some((name, address)) } else { None }
}

fn sections(map: &str) -> impl Iterator<Item = (&str, u32)> {
    let mut broken = None;
    map.lines().filter_map(move |line| {
        let begun = broken.take();
        let mut words = line.split_whitespace();
        let name = match begun {
            Some(name) => name,
            None => own_name(words.next()?)?,
        };
        let Some(word) = words.next() else {
            broken = Some(name);
            return None;
        };
        // A section of 0 bytes is not in the program.
        let (address, size) = (address(word)?, address(words.next()?)?);
        if size > 0 && is_name(name) { Some((name, address)) } else { None }
    })
}

/// The name of the variable or function in a section. `None` if the section is not for a single name. For example, GCC
/// puts string literals into `.rodata.str1.4` or `.rodata.main.str1.4`, constants into `.rodata.cst8`, and constant
/// addresses into `.data.rel.ro`.
fn own_name(section: &str) -> Option<&str> {
    let (prefix, name) = SECTIONS.iter().find_map(|prefix| Some((*prefix, section.strip_prefix(prefix)?)))?;
    let is_text = |part: &str| part.strip_prefix("str").is_some_and(|size| size.parse::<u8>().is_ok());
    match prefix {
        ".text." => Some(GROUPS.iter().find_map(|group| name.strip_prefix(group)).unwrap_or(name)),
        ".rodata." if name.contains('.') && name.split('.').any(is_text) => None,
        ".rodata." if ["cst4", "cst8", "cst16", "cst32"].contains(&name) => None,
        ".data." if name == "rel" || name.starts_with("rel.") => None,
        _ => Some(name),
    }
}

fn address(word: &str) -> Option<u32> {
    u32::from_str_radix(word.strip_prefix("0x")?, 16).ok()
}

fn is_name(word: &str) -> bool {
    let rest = |byte: u8| byte.is_ascii_alphanumeric() || b"_$.@".contains(&byte);
    word.bytes().all(rest) && word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "\
Archive member included to satisfy reference by file (symbol)

Discarded input sections

 .text          0x00000000        0x0 main.o
 .bss.unused    0x00000000        0x4 main.o

Memory Configuration

Name             Origin             Length             Attributes
ewram            0x02000000         0x00040000         rw

Linker script and memory map

LOAD main.o
                0x02000000                        __ewram_start = 0x2000000

.bss            0x02000000      0x200
                0x02000000                . = ALIGN (0x4)
                0x02000000                __bss_start = .
 *(.bss*)
 .bss.score     0x02000044        0x4 main.o
                0x02000044                score
 .bss.hidden    0x02000048        0x2 main.o
 .bss.a_name_that_is_long
                0x0200004c        0x4 main.o
 .bss.nothing   0x02000050        0x0 main.o
 .rodata.str1.4 0x08001000        0x8 main.o
 .rodata.main.str1.4
                0x08001008        0x8 main.o
 .rodata.cst8   0x08001010        0x8 main.o
 .data.rel.ro   0x08001018        0x8 main.o
 .text.startup.abort_game
                0x08000200       0x10 main.o
 .bss.count.0   0x02000054        0x4 main.o
 COMMON         0x02000050        0x8 other.o
                0x02000050                common_thing
                [!provide]                        PROVIDE (__x = .)
                0x0000000008000100                main
OUTPUT(game.elf elf32-littlearm)
";

    #[test]
    fn symbols_and_static_variables_are_found() {
        assert!(is_link_map(MAP) && !is_link_map("00:c044 score"));
        let found: Vec<_> = symbols(MAP).collect();
        let expected = [
            ("__ewram_start", 0x0200_0000),
            ("__bss_start", 0x0200_0000),
            ("score", 0x0200_0044),
            ("common_thing", 0x0200_0050),
            ("main", 0x0800_0100),
            ("score", 0x0200_0044),
            ("hidden", 0x0200_0048),
            ("a_name_that_is_long", 0x0200_004C),
            ("abort_game", 0x0800_0200),
            ("count.0", 0x0200_0054),
        ];
        assert_eq!(found, expected);
    }
}
