use std::sync::{Arc, Barrier};
use std::thread;

use framewire_libmgba::{Core, flags};

use crate::support::{GBA_COUNTER, Transcript, gb_core, gba_core, run};

fn work(mut core: Core) -> Vec<String> {
    let said = Transcript::attach(&mut core);
    core.run_script_source(
        "worker",
        "callbacks:add('frame', function()
           if emu:currentFrame() % 10 == 0 then
             local b = console:createBuffer('b')
             b:clear()
             print(emu:getGameTitle(), emu:read8(emu.memory.wram:base()))
           end
         end)",
    )
    .unwrap();
    for _ in 0..5 {
        run(&mut core, 20);
        let state = core.save_state(flags::ALL).unwrap();
        run(&mut core, 3);
        core.load_state(&state, flags::LOAD).unwrap();
        core.screenshot_png().unwrap();
    }
    said.take_info()
}

#[test]
fn cores_on_many_threads_do_not_disturb_each_other() {
    let alone = [work(gba_core()), work(gb_core())];
    let start = Arc::new(Barrier::new(6));
    let threads: Vec<_> = (0..6)
        .map(|i| {
            let start = start.clone();
            thread::spawn(move || {
                start.wait();
                work(if i % 2 == 0 { gba_core() } else { gb_core() })
            })
        })
        .collect();
    for (i, thread) in threads.into_iter().enumerate() {
        assert_eq!(thread.join().unwrap(), alone[i % 2]);
    }
}

#[test]
fn a_core_moves_between_threads_with_its_scripts() {
    let mut core = gba_core();
    let said = Transcript::attach(&mut core);
    core.run_script_source("x", "callbacks:add('frame', function() print('f') end)").unwrap();
    run(&mut core, 1);
    let mut core = thread::spawn(move || {
        run(&mut core, 1);
        core
    })
    .join()
    .unwrap();
    run(&mut core, 5);
    assert_eq!(said.take_info().len(), 7);
    assert!(core.read32(GBA_COUNTER) > 0);
}
