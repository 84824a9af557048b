//! All of mGBA-http's routes, with an embedded core, with the script in a core without a window, and with a stock mGBA
//! in a window. The same requests get the same answers.

use std::fs;

use framewire_e2e::{demo, paths};

use super::served::{Served, wait_until};

#[test]
fn every_route_works_on_the_embedded_core() {
    every_route(&Served::embedded());
}

#[test]
fn every_route_works_on_the_script_without_a_window() {
    every_route(&Served::hosted());
}

#[test]
fn every_route_works_on_a_stock_mgba_in_its_window() {
    every_route(&Served::stock());
}

fn every_route(served: &Served) {
    served.wait_for_game();
    identity(served);
    bus(served);
    domains(served);
    keys(served);
    buttons(served);
    holds(served);
    states(served);
    console(served);
    echo(served);
    bad_input(served);
    picture(served);
    files(served);
    registers(served);
}

fn identity(served: &Served) {
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    assert_eq!(served.text("/core/getgamecode"), "AGB-XFWE");
    assert_eq!(served.text("/core/platform"), "0");
    assert_eq!(served.text("/core/framecycles"), "280896");
    assert_eq!(served.text("/core/frequency"), "16777216");
    let rom = fs::read(paths::rom()).unwrap();
    assert_eq!(served.number("/core/romsize"), rom.len() as i64);
    assert_eq!(served.number("/core/checksum"), i64::from(crc32fast::hash(&rom)));
    let frame = served.number("/core/currentFrame");
    wait_until("frames run", || Ok(served.number("/CORE/CURRENTFRAME") > frame));
    let state = served.text("/v1/emulator");
    assert!(state.contains(r#""run":"running""#), "{state}");
}

fn bus(served: &Served) {
    let scratch = demo::field("scratch");
    for (bits, value) in
        [(8, 0u32), (8, 0x80), (8, 0xff), (16, 0x8000), (16, 0xffff), (32, 0x8000_0000), (32, 0xffff_ffff)]
    {
        assert_eq!(served.post(&format!("/core/write{bits}?address={scratch}&value={value}")), "");
        assert_eq!(
            served.number(&format!("/core/read{bits}?address={scratch}")),
            i64::from(value),
            "{bits} bits"
        );
    }
    served.post(&format!("/core/write32?address={scratch:#x}&value=3925868755")); // 0xea0000d3
    assert_eq!(served.text(&format!("/core/readrange?address={scratch:#010x}&length=0x4")), "d3,00,00,ea");
    assert_eq!(served.text(&format!("/core/readrange?ADDRESS={scratch}&Length=2")), "d3,00");
    assert_eq!(served.text(&format!("/core/readrange?address={scratch}&length=0")), "");
}

fn domains(served: &Served) {
    let names = served.text("/coreadapter/memory");
    // mGBA lists the battery memory only after it has detected the kind of that memory.
    let mut names: Vec<&str> = names.split(',').filter(|name| *name != "sram").collect();
    names.sort_unstable();
    assert_eq!(names, ["bios", "cart0", "cart1", "cart2", "io", "iwram", "oam", "palette", "vram", "wram"]);
    assert_eq!(served.text("/memorydomain/base?memoryDomain=wram"), "33554432");
    assert_eq!(served.text("/memorydomain/bound?memoryDomain=wram"), "33816576");
    assert_eq!(served.text("/memorydomain/size?memoryDomain=wram"), "262144");
    assert_eq!(served.text("/memorydomain/name?memoryDomain=wram"), "EWRAM");
    for (bits, value) in [(8, 0xffu32), (16, 0xffff), (32, 0xffff_ffff)] {
        let place = "memoryDomain=wram&address=0x104";
        assert_eq!(served.post(&format!("/memorydomain/write{bits}?{place}&value={value}")), "");
        assert_eq!(served.number(&format!("/memorydomain/read{bits}?{place}")), i64::from(value));
        let wrapped = "memoryDomain=wram&address=0x02000104";
        assert_eq!(served.number(&format!("/memorydomain/read{bits}?{wrapped}")), i64::from(value));
    }
    assert_eq!(
        served.text("/memorydomain/readrange?memoryDomain=wram&address=0x104&length=4"),
        "ff,ff,ff,ff"
    );
}

fn registers(served: &Served) {
    assert!(served.number("/core/readregister?regName=pc") > 0);
    assert_eq!(served.post("/core/writeregister?regName=r12&value=-1"), "");
    assert_eq!(served.post("/core/writeregister?regName=r12&value=4294967295"), "");
    assert_eq!(served.post("/core/step"), "");
    // A changed register may crash the game, so the game is reset.
    assert_eq!(served.post("/coreadapter/reset"), "");
    served.ready();
}

fn keys(served: &Served) {
    for key in 0..10 {
        assert_eq!(served.post(&format!("/core/addkey?key={key}")), "");
        assert_eq!(served.text(&format!("/core/getkey?key={key}")), "1");
        assert_eq!(served.number("/core/getkeys"), 1 << key);
        assert_eq!(served.post(&format!("/core/clearkey?key={key}")), "");
        assert_eq!(served.text(&format!("/core/getkey?key={key}")), "0");
    }
    served.post("/core/setkeys?keys=12");
    served.post("/core/addkeys?keyBitmask=3");
    assert_eq!(served.text("/core/getkeys"), "15");
    served.post("/core/clearkeys?keyBitmask=15");
    assert_eq!(served.text("/core/getkeys"), "0");
}

fn buttons(served: &Served) {
    served.post("/mgba-http/button/add?button=A");
    assert_eq!(served.text("/mgba-http/button/get?button=A"), "1");
    served.post("/mgba-http/button/addmany?buttons=B&buttons=Start");
    let held = served.text("/mgba-http/button/getall");
    let mut held: Vec<&str> = held.split(',').collect();
    held.sort_unstable();
    assert_eq!(held, ["A", "B", "Start"]);
    served.post("/mgba-http/button/clear?button=A");
    served.post("/mgba-http/button/clearmany?buttons=B&buttons=Start");
    assert_eq!(served.text("/mgba-http/button/getall"), "");
}

fn holds(served: &Served) {
    let presses = |key: u32| served.game(demo::field("presses") + 4 * key);
    for (target, key) in [
        ("/mgba-http/button/tap?button=A", 0),
        ("/mgba-http/button/tapmany?buttons=B", 1),
        ("/mgba-http/button/hold?button=Select&duration=3", 2),
        ("/mgba-http/button/holdmany?buttons=R&buttons=L&duration=3", 8),
        ("/mgba-http/button/holdmany?buttons=R&buttons=L&duration=3", 9),
    ] {
        let before = presses(key);
        assert_eq!(served.post(target), "");
        wait_until("the game counted the press", || Ok(presses(key) == before + 1));
        wait_until("the keys are released", || Ok(served.text("/core/getkeys") == "0"));
        assert_eq!(presses(key), before + 1, "{target}");
    }
}

fn states(served: &Served) {
    let scratch = demo::field("scratch");
    let write = |value: u32| served.post(&format!("/core/write32?address={scratch}&value={value}"));
    let read = || served.number(&format!("/core/read32?address={scratch}"));
    for flags in ["", "?flags=0", "?flags=31"] {
        write(0xdead_beef);
        let state = served.post(&format!("/core/savestatebuffer{flags}"));
        let bytes = (state.len() + 1) / 3;
        match flags {
            "?flags=0" => assert_eq!(bytes, 0x61000),
            _ => assert!(state.starts_with("89,50,4e,47"), "a PNG"),
        }
        write(1);
        let body = format!("[{state}]").into_bytes();
        let reply = served.http.send("POST", "/core/loadstatebuffer", "text/plain", body).unwrap();
        assert_eq!((reply.status, reply.text().as_str()), (200, "true"), "{flags}");
        assert_eq!(read(), 0xdead_beef, "{flags}");
    }
    let bare = served.file("bare.ss");
    assert_eq!(served.post(&format!("/core/savestatefile?path={bare}&flags=0")), "true");
    write(1);
    assert_eq!(served.post(&format!("/core/loadstatefile?path={bare}&flags=0")), "true");
    assert_eq!(read(), 0xdead_beef, "a bare state in a file");
    assert_eq!(served.post(&format!("/core/savestatefile?path={}", served.file(""))), "false", "a folder");
    let file = served.file("a state, with+signs.ss");
    write(2);
    assert_eq!(served.post(&format!("/core/savestatefile?path={file}")), "true");
    assert_eq!(served.post("/core/savestateslot?slot=3"), "true");
    write(3);
    assert_eq!(served.post(&format!("/core/loadstatefile?path={file}&flags=29")), "true");
    assert_eq!(read(), 2);
    write(3);
    assert_eq!(served.post("/core/loadstateslot?slot=3"), "true");
    assert_eq!(read(), 2);
    assert!(served.folder.path().join("a state, with+signs.ss").exists());
}

fn console(served: &Served) {
    for level in ["log", "warn", "error"] {
        assert_eq!(
            served.post(&format!("/console/{level}?message=h%C3%A9llo,%20%3C%7CEND%7C%3Ecore.reset")),
            ""
        );
    }
    served.ready();
}

fn echo(served: &Served) {
    let message = "a,b [c] <|END|> \u{e9}\u{4e16}";
    let encoded = "a,b%20%5Bc%5D%20%3C%7CEND%7C%3E%20%C3%A9%E4%B8%96";
    assert_eq!(served.text(&format!("/mgbaendpoint?message={encoded}")), message);
    let long = "x".repeat(5000);
    assert_eq!(served.text(&format!("/mgbaendpoint?message={long}")), long);
}

fn bad_input(served: &Served) {
    served.refused("GET", "/core/readregister?regName=r99", 400, "regName");
    served.refused("GET", "/memorydomain/read8?memoryDomain=nothing&address=0", 400, "wram");
    served.refused("GET", "/core/readrange?address=0&length=-1", 400, "length");
    served.refused("GET", "/core/readrange?address=0&length=0x7fffffff", 400, "length");
    served.refused("POST", "/core/write8?address=0x02000100&value=300", 400, "255");
    served.refused("POST", "/core/addkey?key=10", 400, "key");
    served.refused("POST", "/mgba-http/button/tap?button=a", 400, "Select");
    served.refused("POST", "/mgba-http/button/holdmany?duration=3", 400, "buttons");
    served.refused("GET", "/core/read8", 400, "address");
    served.refused("GET", "/core/reset", 404, "/core/reset");
    served.refused("POST", "/core/read8?address=0", 405, "GET");
    let reply = served.http.send("POST", "/core/loadstatebuffer", "text/plain", b"[d3,zz]".to_vec()).unwrap();
    assert_eq!(reply.status, 400, "{}", reply.text());
    let garbage = b"[01,02,03]".to_vec();
    let reply = served.http.send("POST", "/core/loadstatebuffer", "text/plain", garbage).unwrap();
    assert_eq!((reply.status, reply.text().as_str()), (200, "false"));
    assert_eq!(served.post("/core/loadstateslot?slot=9"), "false");
    assert_eq!(served.post(&format!("/core/loadstatefile?path={}", served.file("nothing"))), "false");
    assert_eq!(served.post(&format!("/core/loadfile?path={}", served.file("nothing"))), "false");
    served.ready();
}

fn picture(served: &Served) {
    let file = served.folder.path().join("shot +1.png");
    assert_eq!(served.post(&format!("/core/screenshot?path={}", served.file("shot +1.png"))), "");
    wait_until("the picture is there", || Ok(png(&fs::read(&file).unwrap_or_default()).is_some()));
    served.refused(
        "POST",
        &format!("/core/screenshot?path={}", served.file("no folder/x.png")),
        502,
        "x.png",
    );
    served.refused("POST", &format!("/core/screenshot?path={}", served.file("")), 502, "directory");
    let reply = served.get("/screen.png");
    assert_eq!((reply.status, reply.content_type.as_str()), (200, "image/png"));
    assert_eq!(png(&reply.body), Some((240, 160)));
}

/// The width and height of a PNG, after decoding it.
fn png(bytes: &[u8]) -> Option<(u32, u32)> {
    let picture = framewire_media::png::decode(bytes).ok()?;
    Some((picture.width, picture.height))
}

fn files(served: &Served) {
    let rom = served.file("demo game+1.gba");
    assert_eq!(served.post("/core/autoloadsave"), "true");
    let save = served.folder.path().join("other.sav");
    fs::write(&save, vec![0xff; 0x8000]).unwrap();
    assert_eq!(
        served.post(&format!("/core/loadsavefile?path={}&temporary=true", served.file("other.sav"))),
        "true"
    );
    assert_eq!(served.post("/coreadapter/reset"), "");
    assert_eq!(served.post(&format!("/core/loadfile?path={rom}")), "true");
    assert_eq!(served.post(&format!("/mgba-http/extension/loadfile?path={rom}")), "true");
    served.ready();
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    wait_until("the game runs", || {
        Ok(served.text(&format!("/core/readrange?address={}&length=8", demo::field("magic")))
            == "46,57,44,45,4d,4f,30,31")
    });
    fs::write(served.folder.path().join("text.gba"), "no ROM").unwrap();
    // libmgba accepts a ROM with a truncated header and reads beyond its end.
    fs::write(served.folder.path().join("cut.gba"), &fs::read(paths::rom()).unwrap()[..0xb3]).unwrap();
    for name in ["text.gba", "cut.gba"] {
        let file = served.file(name);
        assert_eq!(served.post(&format!("/core/loadfile?path={file}")), "false", "{name}");
        assert_eq!(served.post(&format!("/mgba-http/extension/loadfile?path={file}")), "false", "{name}");
    }
    assert_eq!(served.text("/core/getgametitle"), "FRAMEWIRE");
    served.ready();
}
