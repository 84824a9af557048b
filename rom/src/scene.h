/* The unchanging part of the screen, and the shared tiles that the view shows on it. */
#pragma once
#include "canvas.h"

enum {
    SCORE_COLUMN = 5, /* columns and rows are positions on the screen, in tiles */
    FACTOR_COLUMN = 12,
    BEST_COLUMN = 16,
    LEVEL_COLUMN = 24,
    LIVES_COLUMN = 27,
    LIVES_SHOWN = 3,
    HUD_ROW = 0,
    FRAME_COLUMN = 12, /* of the frame counter */
    FRAME_ROW = 17,

    HUD_DIGITS = CANVAS_TILES, /* first of ten tiles */
    DISPLAY_DIGITS = HUD_DIGITS + 10,
    LIFE_TILES = DISPLAY_DIGITS + 10, /* two tiles: a ball that is lost, a ball that is left */
    BRICK_TILES = LIFE_TILES + 2,     /* four tiles per row: left and right half of a plain brick, and of a gem */
};

/* Paints everything once. */
void scene_paint(void);
