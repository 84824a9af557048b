/* The names of the background's colours. The sprites' sixteen colours have only numbers, which art/sprites.txt uses. */
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
    GLOW = LAMP + KEY_COUNT,                  /* the light around each lamp */
};

/* Loads both palettes, with all lamps unlit. */
void palette_load(void);

/* Switches a lamp on or off. */
void palette_lamp(int key, bool lit);
