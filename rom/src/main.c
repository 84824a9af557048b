#include "game.h"
#include "palette.h"
#include "save.h"
#include "scene.h"
#include "sound.h"
#include "sprites.h"
#include "view.h"

/* Reads the keys and records them in memory. Returns the keys that were pressed since the last frame. */
static u16 read_keys(void)
{
    u16 held = ~REG_KEYINPUT & ((1 << KEY_COUNT) - 1);
    u16 pressed = held & ~mem.held;
    mem.held = held;
    mem.key_log[mem.frame % (sizeof mem.key_log / sizeof mem.key_log[0])] = held;
    for (int key = 0; key < KEY_COUNT; key++)
        mem.presses[key] += pressed >> key & 1;
    return pressed;
}

static void power_on(void)
{
    REG_WAITCNT = WAITCNT_FAST_ROM;
    REG_DISPCNT = 0;
    game_power_on();
    mem.high_score = save_load();

    palette_load();
    scene_paint();
    sprites_load();
    sound_on();

    REG_BG0CNT = BGCNT_256_COLOURS | BGCNT_MAP(CANVAS_MAP_BLOCK);
    REG_DISPSTAT = DISPSTAT_VBLANK_IRQ;
    REG_IE = IRQ_VBLANK;
    REG_IME = 1;
}

int main(void)
{
    static const char magic[] = "FWDEMO01";
    u32 saved;

    power_on();
    saved = mem.high_score;
    for (u32 i = 0; i < sizeof mem.magic; i++)
        mem.magic[i] = magic[i];

    /* Everything happens in the vertical blank, so each picture shows the state that is in memory while it is drawn. */
    for (;;) {
        wait_for_vblank();
        mem.frame++;
        struct events events = game_step(read_keys());
        view_update();
        sprites_update(&events);
        sound_play(&events);
        REG_DISPCNT = DISPCNT_BG0 | DISPCNT_OBJ | DISPCNT_OBJ_1D;

        if (mem.state == STATE_OVER && mem.high_score > saved) {
            saved = mem.high_score;
            save_store(saved);
        }
    }
}
