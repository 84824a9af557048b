//! The same keys in the same frames always lead to the same picture and memory.

use std::fs;
use std::path::Path;

use framewire_e2e::Framewire;

use super::served::wait_until;

/// A script that presses random keys for 1,000 frames and then writes a picture and memory to files. `seed` determines
/// the keys.
fn script(seed: u32, folder: &Path) -> String {
    let (picture, memory) = (folder.join("picture.png"), folder.join("memory"));
    format!(
        "local frame, state = 0, {seed}
         callbacks:add('frame', function()
           frame = frame + 1
           if frame % 5 == 0 then
             state = (state * 1103515245 + 12345) & 0x7FFFFFFF
             emu:setKeys((state >> 16) & 0x3F7) -- all but Start, which begins a new game after the last ball
           end
           if frame == 1000 then
             emu:screenshot({picture:?})
             local file <close> = io.open({memory:?}, 'wb')
             file:write(emu:readRange(0x02000000, 0x100))
           end
         end)"
    )
}

/// Plays 1,000 frames. Returns the picture and the memory at the end.
fn play(seed: u32) -> (Vec<u8>, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys.lua");
    fs::write(&path, script(seed, folder.path())).unwrap();
    let _server = Framewire::serve(&["--lua", path.to_str().unwrap(), "--speed", "unlimited"]).unwrap();
    let memory = folder.path().join("memory");
    wait_until("the script is done", || Ok(fs::metadata(&memory).is_ok_and(|file| file.len() == 0x100)));
    (fs::read(folder.path().join("picture.png")).unwrap(), fs::read(memory).unwrap())
}

#[test]
fn the_same_keys_give_the_same_thousand_frames() {
    let first = play(1);
    assert!(first == play(1), "the same keys led to another picture or memory");
    assert!(first.1 != play(2).1, "the keys have no effect");
}
