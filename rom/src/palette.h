/* Names of the background's 256 colours. The sprites' sixteen are numbered in art/sprites.txt. */
#pragma once
#include "memory_map.h"

enum {
    SKY_SHADES = 16,
    BRICK_SHADES = 3, /* light, plain, dark */
};

enum colour {
    BLACK,
    HUD_PAPER,
    HUD_LABEL,
    HUD_DIGIT,
    HUD_EDGE,
    WALL_LIGHT,
    WALL,
    WALL_DARK,
    DESK,
    DESK_LIGHT,
    CASE_LIGHT,
    CASE,
    CASE_DARK,
    CASE_LABEL,
    WELL, /* the d-pad's cross and the rims of buttons */
    DISPLAY_RIM,
    DISPLAY,
    DISPLAY_INK,
    DISPLAY_DIM,
    LIFE_LIGHT,
    LIFE,
    LIFE_GONE,
    STAR,
    GEM,
    SKY,
    BRICK = SKY + SKY_SHADES,
    LAMP = BRICK + BRICK_ROWS * BRICK_SHADES, /* the lamps' glass, in the order of the keys */
    GLOW = LAMP + KEY_COUNT,                  /* and the light around each */
    COLOURS = GLOW + KEY_COUNT,
};

/* Loads both palettes, every lamp unlit. */
void palette_load(void);

/* Lights a lamp or puts it out. */
void palette_lamp(int key, bool lit);
