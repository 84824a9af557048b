//! Tests of the language of expressions: texts, their values, and their errors.

use framewire_expression::{
    Code, Expression, Format, Names, NoNames, Range, Subject, Symbol, Type, Variable,
};

/// A few names. Some have a type, as in a memory map; others have no type, as in a symbol file.
struct Map;

impl Names for Map {
    fn find(&self, name: &str) -> Result<Symbol, String> {
        let (address, kind, count) = match name {
            "score" => (0x0200_0044, Some(Type::U32), 1),
            "ball_dx" => (0x0200_003c, Some(Type::I16), 1),
            "frame" => (0x0200_0008, Some(Type::U32), 1),
            "presses" => (0x0200_0010, Some(Type::U32), 10),
            "Main.loop" => (0x150, None, 1),
            "last" => (0xffff_fffe, Some(Type::U16), 1),
            "cut" => (0xffff_fffe, Some(Type::U32), 1),
            "end" => (0xffff_fffc, Some(Type::U32), 4),
            _ => return Err(format!("no symbol is called `{name}`")),
        };
        Ok(Symbol { address, kind, count })
    }
}

fn parse(text: &str) -> Expression {
    Expression::parse(text, &Map).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// The value of an expression that reads no memory, in frame 100.
fn value(text: &str) -> Option<i64> {
    parse(text).value(100, &[])
}

/// Checks the column and a part of the message of an error.
#[track_caller]
fn refused(text: &str, column: usize, part: &str) {
    let error = Subject::parse(text, &Map).expect_err(text);
    assert_eq!(error.column, column, "{text}: {error}");
    assert!(error.message.contains(part), "{text}: {error}");
}

#[test]
fn operators_have_the_expected_precedence() {
    for (text, expected) in [
        ("2 + 3 * 4", 14),
        ("(2 + 3) * 4", 20),
        ("10 - 3 - 2", 5),
        ("100 / 7 % 4", 2),
        ("6 & 3 == 2", 1),
        ("1 | 2 ^ 3 & 6", 1),
        ("1 << 2 + 1", 8),
        ("-8 >> 1", -4),
        ("~0 & 0xff", 255),
        ("!0 + 1", 2),
        ("not 0 == 1", 1),
        ("not not 5", 1),
        ("1 < 2 and 2 < 3 or false", 1),
        ("0 or 0 and 1", 0),
        ("5 && 7 || 0", 1),
        ("- - 3", 3),
        ("7 >= 7 and 7 <= 7 and 7 != 8", 1),
        ("-7 / 2", -3),
        ("-7 % 2", -1),
        ("frame % 60", 40),
    ] {
        assert_eq!(value(text), Some(expected), "{text}");
    }
}

#[test]
fn an_expression_has_no_value_if_a_part_that_is_needed_has_none() {
    for text in ["1 / 0", "1 % 0", "1 << 64", "1 >> -1", "1 << 63", "9223372036854775807 + 1", "not 1/0"] {
        assert_eq!(value(text), None, "{text}");
    }
    assert_eq!(value("0 and 1 / 0"), Some(0));
    assert_eq!(value("1 or 1 / 0"), Some(1));
    assert_eq!(value("1 / 0 or 1"), None);
    assert_eq!(value("1 << 62"), Some(1 << 62));
}

#[test]
fn each_place_is_listed_once_with_its_type() {
    let expression = parse("score > 10 and u16[0x02000038] != i16[0x2000038] or score == u8[wram:0x10+1]");
    let places: Vec<_> = expression
        .places()
        .iter()
        .map(|place| (place.domain.as_deref(), place.address, place.kind))
        .collect();
    let expected = [
        (None, 0x0200_0044, Type::U32),
        (None, 0x0200_0038, Type::U16),
        (None, 0x0200_0038, Type::I16),
        (Some("wram"), 0x11, Type::U8),
    ];
    assert_eq!(places, expected);
    assert_eq!(expression.value(0, &[11, 1, 1, 0]), Some(0));
    assert_eq!(expression.value(0, &[11, 1, 2, 0]), Some(1));
    assert_eq!(expression.value(0, &[3, 1, 1, 3]), Some(1));
    assert!(expression.is_condition() && !expression.uses_frame());
}

#[test]
fn names_are_values_outside_of_brackets_and_addresses_inside() {
    let places =
        |text| parse(text).places().iter().map(|place| (place.address, place.kind)).collect::<Vec<_>>();
    assert_eq!(places("score + ball_dx"), [(0x0200_0044, Type::U32), (0x0200_003c, Type::I16)]);
    assert_eq!(places("u8[score + 2]"), [(0x0200_0046, Type::U8)]);
    assert_eq!(places("presses[9]"), [(0x0200_0034, Type::U32)]);
    assert_eq!(places("u16[presses[1] + 2 * 1]"), [(0x0200_0016, Type::U16)]);
    assert_eq!(places("u8[Main.loop]"), [(0x150, Type::U8)]);
    assert_eq!(places("last"), [(0xffff_fffe, Type::U16)]);
    // `frame` is the frame counter everywhere except where an address is expected.
    assert!(parse("frame").uses_frame());
    assert_eq!(places("u32[frame]"), [(0x0200_0008, Type::U32)]);
}

#[test]
fn names_beyond_the_last_address_are_refused() {
    assert_eq!(parse("end[0]").places()[0].address, 0xffff_fffc);
    refused("1 + end[1]", 5, "the address is 4294967296; use 0 to 0xffffffff");
    refused("cut", 1, "4 bytes from 0xfffffffe on go beyond the last address");
}

#[test]
fn a_variable_that_a_pointer_leads_to_cannot_be_read_beforehand() {
    struct Hero(Variable);
    impl Names for Hero {
        fn find(&self, name: &str) -> Result<Symbol, String> {
            NoNames.find(name)
        }

        fn variable(&self, path: &str) -> Option<&Variable> {
            if path == "hero" { Some(&self.0) } else { None }
        }
    }
    let base = Code::parse("u32[0x03000000]", &NoNames).unwrap();
    let hero = Hero(Variable { base, dimensions: Vec::new(), kind: Some(Type::U16), format: Format::Plain });
    for text in ["hero", "u8[hero]"] {
        let error = Expression::parse(text, &hero).unwrap_err().to_string();
        assert!(error.contains("a pointer leads to this address"), "{text}: {error}");
        assert!(Code::parse(text, &hero).unwrap().follows_pointers(), "{text}");
    }
    let error = Subject::parse("bytes[hero, 2]", &hero).unwrap_err().to_string();
    assert!(error.contains("a pointer leads to this address"), "{error}");
}

#[test]
fn bytes_and_texts_can_stand_alone() {
    let range = |domain: Option<&str>, address, length| {
        Subject::Range(Range { domain: domain.map(str::to_owned), address, length })
    };
    assert_eq!(Subject::parse("bytes[score, 8]", &Map), Ok(range(None, 0x0200_0044, 8)));
    assert_eq!(Subject::parse(" bytes[ iwram:0x10 , 4*4 ] ", &NoNames), Ok(range(Some("iwram"), 0x10, 16)));
    assert!(matches!(Subject::parse("score", &Map), Ok(Subject::Expression(_))));
    refused("bytes[score, 8] + 1", 17, "stand alone");
    refused("1 + bytes[score, 8]", 20, "stand alone");
    refused("bytes[score]", 12, "comma");
    refused("bytes[score, 0]", 14, "1 to 4096");
    refused("bytes[score, 4097]", 14, "1 to 4096");
    refused("bytes[0xfffffff0, 32]", 7, "beyond the last address");
    let text = Subject::Text(Range { domain: None, address: 0x0200_0044, length: 12 });
    assert_eq!(Subject::parse("text[score, 12]", &Map), Ok(text));
    assert!(matches!(Subject::parse("text[score] == \"A\"", &Map), Ok(Subject::Expression(_))));
    refused("text[score, 12] + 1", 17, "stand alone");
    refused("not text[score, 12]", 15, "watched alone");
}

#[test]
fn an_error_about_bytes_alone_does_not_say_that_they_can_stand_alone() {
    for text in ["bytes[score, 8]", "text[score, 8]"] {
        let message = Code::parse(text, &Map).unwrap_err().message;
        assert!(message.contains("can only be watched alone; to compare, write"), "{message}");
    }
}

#[test]
fn bytes_are_compared() {
    let memory = |text: &str, values: &[i64]| parse(text).value(0, values);
    let compared = parse("bytes[score, 2] == \"0aFF\"");
    let places: Vec<_> = compared.places().iter().map(|place| (place.address, place.kind)).collect();
    assert_eq!(places, [(0x0200_0044, Type::U8), (0x0200_0045, Type::U8)]);
    assert_eq!(memory("bytes[score, 2] == \"0aFF\"", &[10, 255]), Some(1));
    assert_eq!(memory("bytes[score, 2] == \"0aFF\"", &[10, 254]), Some(0));
    assert_eq!(memory("not (bytes[score, 2] != \"0aFF\") and 1", &[10, 255]), Some(1));
    assert!(parse("bytes[score, 1] != \"00\"").is_condition());
    refused("bytes[score, 2] == \"0a\"", 20, "1 bytes are compared with 2");
    refused("bytes[score, 2] == \"0a0\"", 20, "two hex digits");
    refused("bytes[score, 2] == \"zz\"", 20, "two hex digits");
    refused("bytes[score, 2] == 5", 20, "hex digits");
    refused("bytes[score, 2] > \"0a0a\"", 17, "stand alone or be compared");
    let long = format!("bytes[score, 65] == \"{}\"", "00".repeat(65));
    refused(&long, 21, "compare 1 to 64");
}

#[test]
fn errors_name_the_problem_and_its_column() {
    refused("", 1, "nothing is here");
    refused("   ", 4, "nothing is here");
    refused("score >", 8, "not the end");
    refused("score > 10 10", 12, "operator or the end");
    refused(&"é".repeat(600), 512, "1024 bytes at most");
    refused("(score", 7, "`)` is missing for the bracket in column 1");
    refused("u16[0x10", 9, "`]` is missing for the bracket in column 4");
    refused("scroe > 1", 1, "no symbol is called `scroe`");
    refused("1 + u64[0]", 5, "neither a type (u8, u16, u32, i8, i16, i32) nor a symbol");
    refused("u16 > 3", 1, "write u16[ADDRESS]");
    refused("u16[0x100000000]", 5, "0 to 0xffffffff");
    refused("u16[-1]", 5, "0 to 0xffffffff");
    refused("u32[0xfffffffd]", 5, "beyond the last address");
    refused("u8[u32[0x02000000]]", 4, "known beforehand");
    refused("u8[1/0]", 4, "no value");
    refused("presses[10]", 9, "indices 0 to 9");
    refused("1 == not 2", 6, "expected a number or a name, not `not`");
    refused("1 == and 2", 6, "left and right");
    refused("presses[score]", 9, "expected a number");
    refused("presses == 3", 1, "presses[0] to presses[9]");
    refused("Main.loop", 1, "u8[Main.loop]");
    refused("Main.loop[1]", 11, "u8[Main.loop+2]");
    refused("1 < 2 < 3", 7, "a < b and b < c");
    refused("score = 3", 7, "==");
    refused("and 1", 1, "left and right");
    refused("1 and", 6, "not the end");
    refused("1 + * 2", 5, "not `*`");
    refused("score;", 6, "';'");
    refused("0x", 1, "not a number");
}

#[test]
fn length_depth_and_places_are_bounded() {
    refused(&"1+".repeat(600), 1024, "1024 bytes at most");
    refused(&format!("{}1{}", "(".repeat(65), ")".repeat(65)), 65 + 1, "can be nested");
    refused(&format!("{}1", "-".repeat(65)), 65 + 1, "can be nested");
    assert_eq!(value(&format!("{}1{}", "(".repeat(64), ")".repeat(64))), Some(1));
    assert_eq!(value(&format!("1{}", "+1".repeat(511))), Some(512));
    let many = (0..65).map(|place| format!("u8[{place}]")).collect::<Vec<_>>().join("+");
    refused(&many, many.find("u8[64]").map_or(0, |at| at + 4), "64 places");
}

/// Random texts are either parsed or refused with a valid column. None causes a panic.
#[test]
fn random_texts_are_parsed_or_refused() {
    const LARGEST: &str = "9223372036854775807";
    let pieces = [
        "(", ")", "[", "]", "u16", "bytes", "text", "\"0a\"", "score", "frame", "1", "0xff", "+", "-", "!",
        "not", "and", "<", "==", ",", ":", "presses", "é", "%", "/", " ", LARGEST, "<<",
    ];
    let mut seed = 1_u64;
    for _ in 0..200_000 {
        let mut text = String::new();
        for _ in 0..seed % 9 + 1 {
            // Knuth's linear congruential generator.
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            text.push_str(pieces[(seed >> 33) as usize % pieces.len()]);
        }
        match Subject::parse(&text, &Map) {
            Ok(Subject::Expression(expression)) => {
                let values = vec![i64::MIN; expression.places().len()];
                expression.value(u32::MAX, &values);
            }
            Ok(Subject::Range(range) | Subject::Text(range)) => assert!(range.length > 0),
            Err(error) => assert!((1..=text.chars().count() + 1).contains(&error.column), "{text}: {error}"),
        }
    }
}
