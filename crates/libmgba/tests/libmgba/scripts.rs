use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use framewire_libmgba::{Core, Error, Level};

use crate::support::{Transcript, file, gb, gb_core, gba, gba_core, run};

#[test]
fn scripts_run_and_their_console_messages_arrive() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "hello",
        "console:log('ä log') console:warn('a warning') console:error('an error')
         print('printed', 1, nil)",
    )
    .unwrap();
    let expected = [
        (Level::Info, "ä log"),
        (Level::Warn, "a warning"),
        (Level::Error, "an error"),
        (Level::Info, "printed\t1\tnil"),
    ];
    assert_eq!(said.take(), expected.map(|(l, t)| (l, t.to_owned())));
}

#[test]
fn scripts_have_the_standard_library() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "globals",
        "for _, name in ipairs { 'emu', 'console', 'callbacks', 'socket', 'util', 'C' } do
           assert(_G[name], name)
         end
         assert(C.GBA_KEY.START == 3)
         assert(io.open and os.clock and package.path)",
    )
    .unwrap();
    assert!(said.take().is_empty());
}

#[test]
fn errors_are_reported_to_the_caller_and_on_the_console() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    for (source, part) in [
        ("this is not Lua", "syntax error"),
        ("error('on purpose')", "on purpose"),
        ("local x = nil; x.y = 1", "attempt to index"),
        ("emu:noSuchMethod()", "noSuchMethod"),
    ] {
        let error = core.run_script_source("bad", source).unwrap_err();
        let Error::Script { message } = &error else { panic!("{error}") };
        assert!(message.contains(part), "{message}");
        assert_eq!(said.take(), [(Level::Error, message.clone())]);
    }
    core.run_script_source("good", "print('still here')").unwrap();
    assert_eq!(said.take_info(), ["still here"]);
}

#[test]
fn a_script_that_does_not_compile_does_not_run_the_script_before_it_again() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source("first", "print('first')").unwrap();
    core.run_script_source("broken", "print(").unwrap_err();
    let lines = said.take();
    assert_eq!(lines.len(), 2, "{lines:?}");
}

#[test]
fn files_can_be_loaded_several_times_and_together() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    let (dir, one) = file("one.lua", b"loads = (loads or 0) + 1 print('one', loads)");
    let two = dir.path().join("two.txt");
    std::fs::write(&two, "print('two', loads)").unwrap();
    core.load_script(&one).unwrap();
    core.load_script(&one).unwrap();
    core.load_script(&two).unwrap();
    assert_eq!(said.take_info(), ["one\t1", "one\t2", "two\t2"]);

    let empty = dir.path().join("empty.lua");
    std::fs::write(&empty, "").unwrap();
    core.load_script(&empty).unwrap();

    std::fs::write(&one, "error('here')").unwrap();
    let error = core.load_script(&one).unwrap_err().to_string();
    assert!(error.contains("one.lua:1: here"), "{error}");
    assert!(matches!(core.load_script(&dir.path().join("none.lua")), Err(Error::Io { .. })));
    assert!(core.load_script(dir.path()).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn a_script_without_an_end_is_refused() {
    let mut core = gba_core();
    let _said = Transcript::attach(&mut core);
    let error = core.load_script("/dev/zero".as_ref()).unwrap_err();
    let Error::Io { source, .. } = &error else { panic!("{error}") };
    assert_eq!(source.to_string(), "it is too large; use a file of at most 16777216 bytes");
}

#[test]
fn without_a_context_there_are_no_scripts() {
    let mut core = gba_core();
    assert!(matches!(core.run_script_source("x", "print(1)"), Err(Error::ScriptsNotAttached)));
    let said = Transcript::attach(&mut core);
    core.detach_scripts();
    core.detach_scripts();
    assert!(matches!(core.run_script_source("x", "print(1)"), Err(Error::ScriptsNotAttached)));
    assert!(said.take().is_empty());
}

#[test]
fn the_callbacks_of_mgba_are_called() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "events",
        "callbacks:add('frame', function() print('frame ' .. emu:currentFrame()) end)
         callbacks:add('reset', function() print('reset') end)
         callbacks:add('shutdown', function() print('shutdown') end)
         callbacks:add('keysRead', function() keysRead = (keysRead or 0) + 1 end)",
    )
    .unwrap();
    let frame = core.frame_counter();
    run(&mut core, 2);
    let expected = [frame + 1, frame + 2].map(|n| format!("frame {n}"));
    assert_eq!(said.take_info(), expected);
    core.read16(0x0400_0130);
    core.run_script_source("asks", "print(keysRead)").unwrap();
    assert_eq!(said.take_info(), ["1"]);
    core.reset();
    assert_eq!(said.take_info(), ["reset"]);
    core.step();
    assert!(said.take_info().is_empty());
    drop(core);
    assert_eq!(said.take_info(), ["shutdown"]);
}

#[test]
fn the_error_of_a_callback_is_reported_once() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source("failing", "callbacks:add('frame', function() error('frame went wrong') end)")
        .unwrap();
    run(&mut core, 10);
    let lines = said.take();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].0, Level::Error);
    assert!(lines[0].1.contains("frame went wrong"), "{lines:?}");
}

#[test]
fn a_script_may_run_frames_and_reset_by_itself() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "runner",
        "callbacks:add('keysRead', function() print('inside') end)
         for _ = 1, 3 do emu:runFrame() end
         emu:setKeys(1)
         emu:read16(0x04000130)
         emu:reset()
         print(emu:currentFrame())",
    )
    .unwrap();
    // Only the last line is printed: callbacks are not called while the script itself runs frames or reads the keys.
    assert_eq!(said.take_info().len(), 1);
    run(&mut core, 2);
}

#[test]
fn text_buffers_work_and_their_text_has_the_level_debug() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "buffer",
        "local b = console:createBuffer('status')
         b:setSize(20, 4)
         b:print('lives 3')
         assert(b:getX() == 7 and b:getY() == 0)
         b:moveCursor(2, 1)
         b:advance(-5)
         assert(b:getX() == 0 and b:getY() == 1 and b:cols() == 20 and b:rows() == 4)
         b:clear()
         b:setName('other')
         console:createBuffer():print('')",
    )
    .unwrap();
    assert_eq!(said.take()[0], (Level::Debug, "lives 3".to_owned()));
}

#[test]
fn emu_stays_valid_when_another_rom_is_loaded() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "keeps",
        "local kept = emu
         callbacks:add('frame', function()
           print(kept:getGameTitle(), emu:getGameTitle(), emu.memory.wram:size())
         end)",
    )
    .unwrap();
    let (_dir, other) = file("o.gba", &gba("OTHER", "OTHE"));
    core.load_file(&other).unwrap();
    core.reset();
    run(&mut core, 1);
    assert_eq!(said.take_info(), ["OTHER\tOTHER\t262144"]);
    core.load_file("/no/such/file".as_ref()).unwrap_err();
    run(&mut core, 1);
    assert_eq!(said.take_info(), ["OTHER\tOTHER\t262144"]);
}

#[test]
fn scripts_move_to_a_core_of_the_other_platform() {
    let mut old = gba_core();
    let said = Transcript::attach(&mut old);
    old.run_script_source(
        "mover",
        "n = 0
         callbacks:add('start', function() print('start', emu:platform()) end)
         callbacks:add('frame', function() n = n + 1 print(n, emu:getGameTitle()) end)",
    )
    .unwrap();
    run(&mut old, 1);
    let mut new = gb_core();
    let replaced = Transcript::attach(&mut new);
    new.adopt_scripts(&mut old);
    run(&mut old, 1);
    drop(old);
    run(&mut new, 1);
    assert_eq!(said.take_info(), ["1\tFRAMEWIRE", "start\t1", "2\tFRAMEWIRE"]);
    assert!(replaced.take().is_empty());
    new.run_script_source("memory", "print(emu.memory.hram:size())").unwrap();
    assert_eq!(said.take_info().len(), 1);
}

#[test]
fn the_wrapper_returns_the_title_of_a_rom_that_a_script_has_loaded() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    let (_dir, other) = file("o.gba", &gba("OTHER", "OTHE"));
    core.run_script_source("loader", &format!("print(emu:loadFile({other:?}))")).unwrap();
    assert_eq!(said.take_info(), ["true"]);
    assert_eq!(core.title(), "OTHER");
    run(&mut core, 2);
    core.reset();
    run(&mut core, 2);
}

#[test]
fn a_script_that_unloads_the_rom_does_not_end_the_process() {
    for mut core in [gba_core(), gb_core()] {
        Transcript::attach(&mut core);
        core.run_script_source("loader", "emu:loadFile('/no/such/file')").unwrap();
        assert_eq!(core.title(), "FRAMEWIRE", "the ROM was loaded again");
        run(&mut core, 2);
        core.screenshot_png().unwrap();
        core.read_range(0, 0x10000).unwrap();
        let (_dir, original) = match core.platform().number() {
            0 => file("g.gba", &gba("FRAMEWIRE", "BFWE")),
            _ => file("g.gb", &gb("FRAMEWIRE")),
        };
        core.load_file(&original).unwrap();
        core.reset();
        run(&mut core, 2);
        assert_eq!(core.title(), "FRAMEWIRE");
    }
}

#[test]
fn a_panic_in_the_console_is_caught() {
    let mut core = gba_core();
    core.attach_scripts(|_, text| panic!("no taste for {text}")).unwrap();
    core.run_script_source("x", "print('this')").unwrap();
    core.run_script_source("x", "error('that')").unwrap_err();
}

#[test]
fn scripts_serve_sockets_and_survive_a_client_that_leaves() {
    // The script takes the first free port from here. No outgoing connection takes one of these ports.
    let first = 20_000 + std::process::id() % 11 * 1000;
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "echo",
        &format!(
            "local server
             for port = {first}, {first} + 999 do
               server = socket.bind('127.0.0.1', port)
               if server and server:listen(8) then
                 print(port)
                 break
               end
             end
             local clients = {{}}
             callbacks:add('frame', function()
               local client = server:accept()
               if client then clients[#clients + 1] = client end
               for _, c in ipairs(clients) do
                 local data = c:receive(100)
                 if data then c:send('echo ' .. data) end
                 if gone then c:send(('x'):rep(100000)) end
               end
             end)"
        ),
    )
    .unwrap();
    let port: u16 = said.take_info()[0].parse().unwrap();
    let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
    client.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
    client.write_all(b"hello").unwrap();
    let mut answer = Vec::new();
    for _ in 0..200 {
        core.run_frame();
        let mut buffer = [0; 64];
        if let Ok(n) = client.read(&mut buffer) {
            answer.extend_from_slice(&buffer[..n]);
        }
        if answer.len() >= 10 {
            break;
        }
    }
    assert_eq!(answer, b"echo hello");
    drop(client);
    core.run_script_source("leave", "gone = true").unwrap();
    run(&mut core, 10);
    assert!(said.take().iter().all(|(level, _)| *level == Level::Info));
}

#[test]
fn script_contexts_can_be_attached_many_times() {
    let mut core = gba_core();
    for _ in 0..20 {
        let said = Transcript::attach(&mut core);
        core.run_script_source(
            "frame",
            "callbacks:add('frame', function() print(emu.memory.wram:read8(0)) end)",
        )
        .unwrap();
        core.run_frame();
        assert_eq!(said.take_info().len(), 1);
    }
    // Afterwards, a core without scripts can still be created and dropped.
    let fresh = Core::from_bytes(&gba("FRAMEWIRE", "BFWE")).unwrap();
    drop(fresh);
}

#[test]
fn the_hook_after_a_frame_runs_before_the_callbacks() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source("keys", "callbacks:add('frame', function() emu:setKeys(3) end)").unwrap();
    let mut seen = Vec::new();
    for _ in 0..2 {
        core.run_frame_and_look(|core| seen.push(core.keys()));
    }
    assert_eq!((seen, core.keys()), (vec![0, 3], 3));
    assert!(said.take().is_empty());
}
