/* What stands still on the screen, and the shared tiles that the view puts over it. */
#pragma once
#include "canvas.h"

enum {
    SCORE_COLUMN = 5, /* where numbers stand, in tiles */
    FACTOR_COLUMN = 12,
    BEST_COLUMN = 16,
    LEVEL_COLUMN = 24,
    LIVES_COLUMN = 27,
    LIVES_SHOWN = 3,
    HUD_ROW = 0,
    FRAME_COLUMN = 12,
    FRAME_ROW = 17,

    HUD_DIGITS = CANVAS_TILES, /* first of ten tiles */
    DISPLAY_DIGITS = HUD_DIGITS + 10,
    LIFE_TILES = DISPLAY_DIGITS + 10, /* lost, left */
    BRICK_TILES = LIFE_TILES + 2,     /* for each row: left and right half plain, left and right half gem */
};

/* Paints everything once. */
void scene_paint(void);
