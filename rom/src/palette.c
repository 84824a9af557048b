#include "palette.h"

#define RGB(hex) (u16)(((hex) >> 19 & 31) | ((hex) >> 11 & 31) << 5 | ((hex) >> 3 & 31) << 10)

static const u16 fixed[SKY] = {
    [BLACK] = RGB(0x000000),
    [HUD_PAPER] = RGB(0x101020),
    [HUD_LABEL] = RGB(0x8898c8),
    [HUD_DIGIT] = RGB(0xfff8d8),
    [HUD_EDGE] = RGB(0x303860),
    [WALL_LIGHT] = RGB(0xb8c8e0),
    [WALL] = RGB(0x7080a8),
    [WALL_DARK] = RGB(0x384060),
    [DESK] = RGB(0x181820),
    [DESK_LIGHT] = RGB(0x282838),
    [CASE_LIGHT] = RGB(0x9888e8),
    [CASE] = RGB(0x6050b0),
    [CASE_DARK] = RGB(0x383078),
    [CASE_LABEL] = RGB(0xe8e0ff),
    [WELL] = RGB(0x201840),
    [DISPLAY_RIM] = RGB(0x101018),
    [DISPLAY] = RGB(0x102820),
    [DISPLAY_INK] = RGB(0x80f8a0),
    [DISPLAY_DIM] = RGB(0x40a070),
    [LIFE_LIGHT] = RGB(0xffffff),
    [LIFE] = RGB(0x68d0f8),
    [LIFE_GONE] = RGB(0x282840),
    [STAR] = RGB(0x7870a8),
    [GEM] = RGB(0xffffff),
};

static const u16 brick_rows[BRICK_ROWS][BRICK_SHADES] = {
    {RGB(0xff98a0), RGB(0xe83850), RGB(0x901830)},
    {RGB(0xffc890), RGB(0xf88020), RGB(0xa04808)},
    {RGB(0xfff8a8), RGB(0xf0c820), RGB(0x987808)},
    {RGB(0xb0f8a8), RGB(0x40b848), RGB(0x187028)},
    {RGB(0xa0e0ff), RGB(0x3088e0), RGB(0x184890)},
};

static const u16 sprites[16] = {
    [1] = RGB(0xffffff),  /* ball, flash */
    [2] = RGB(0xf0f0ff),
    [3] = RGB(0x90a0d0),
    [4] = RGB(0x6878b8),  /* trail */
    [5] = RGB(0x404880),
    [6] = RGB(0xffffff),  /* paddle, top to bottom */
    [7] = RGB(0xb8f0ff),
    [8] = RGB(0x40b8f0),
    [9] = RGB(0x2080c8),
    [10] = RGB(0x104078),
    [11] = RGB(0xf8e898), /* sparks */
    [12] = RGB(0xfff8d8), /* message, its shadow */
    [13] = RGB(0x100818),
};

/* The colours at the top and the bottom of the evening sky: red, green and blue, each up to 31. */
static const u8 sky_above[3] = {1, 2, 7}, sky_below[3] = {9, 4, 14};

static u16 sky(int shade)
{
    u16 colour = 0;
    for (int channel = 2; channel >= 0; channel--) {
        int mix = sky_above[channel] * (SKY_SHADES - 1 - shade) + sky_below[channel] * shade;
        colour = colour << 5 | mix / (SKY_SHADES - 1);
    }
    return colour;
}

void palette_load(void)
{
    for (int i = 0; i < SKY; i++)
        BG_PALETTE[i] = fixed[i];
    for (int i = 0; i < SKY_SHADES; i++)
        BG_PALETTE[SKY + i] = sky(i);
    for (int i = 0; i < BRICK_ROWS * BRICK_SHADES; i++)
        BG_PALETTE[BRICK + i] = brick_rows[i / BRICK_SHADES][i % BRICK_SHADES];
    for (int i = 0; i < 16; i++)
        OBJ_PALETTE[i] = sprites[i];
    for (int key = 0; key < KEY_COUNT; key++)
        palette_lamp(key, false);
}

/* Returns a colour with five eighths of its brightness. The masks keep bits of one channel out of the next. */
static u16 dimmed(u16 colour)
{
    return (colour >> 1 & 0x3DEF) + (colour >> 3 & 0x0C63);
}

void palette_lamp(int key, bool lit)
{
    BG_PALETTE[LAMP + key] = lit ? lamps[key].lit : lamps[key].unlit;
    BG_PALETTE[GLOW + key] = lit ? dimmed(lamps[key].lit) : fixed[WELL];
}
