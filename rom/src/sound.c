#include "sound.h"

enum {
    MASTER_ON = 0x0080,
    TONE_AND_NOISE_BOTH_SIDES = 0x9977,
    FULL_VOLUME = 0x0002,
    NO_SWEEP = 0x0008,
    SQUARE = 0x0080,
    FALLING = 0x0100, /* the volume falls by one step every 1/64 s; with 2 * FALLING, every 2/64 s */
    LOUD = 0xA000,
    SOFT = 0x5000,
    TRIGGER = 0x8000,
};

/* The value of the tone generator's register for a frequency. */
#define PITCH(hertz) (2048 - 131072 / (hertz))

static const u16 row_pitch[BRICK_ROWS] = {PITCH(1047), PITCH(880), PITCH(784), PITCH(659), PITCH(587)};

void sound_on(void)
{
    REG_SOUNDCNT_X = MASTER_ON;
    REG_SOUNDCNT_L = TONE_AND_NOISE_BOTH_SIDES;
    REG_SOUNDCNT_H = FULL_VOLUME;
    REG_SOUND1CNT_L = NO_SWEEP;
}

static void beep(u16 volume, u16 pitch)
{
    REG_SOUND1CNT_H = volume | FALLING | SQUARE;
    REG_SOUND1CNT_X = TRIGGER | pitch;
}

void sound_play(const struct events *events)
{
    if (events->lost) {
        REG_SOUND4CNT_L = LOUD | 2 * FALLING;
        REG_SOUND4CNT_H = TRIGGER | 0x0054;
    } else if (events->cleared) {
        beep(LOUD, PITCH(1568));
    } else if (events->hits) {
        beep(LOUD, row_pitch[events->hit_cells[0] / BRICK_COLUMNS]);
    } else if (events->returned) {
        beep(LOUD, PITCH(392));
    } else if (events->bounced) {
        beep(SOFT, PITCH(294));
    }
}
