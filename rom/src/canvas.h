/* Functions that treat the background as a picture of 240 by 160 pixels with 256 colours, and paint on it.
 *
 * The console shows a map of tiles of 8 by 8 pixels. Each of the 600 places on the screen has a tile of its own, so
 * that every pixel can be set. There are also shared tiles. Showing one at a place changes 64 pixels with one write. */
#pragma once
#include "gba.h"

enum {
    CANVAS_COLUMNS = SCREEN_WIDTH / 8,
    CANVAS_ROWS = SCREEN_HEIGHT / 8,
    CANVAS_TILES = CANVAS_COLUMNS * CANVAS_ROWS, /* the first shared tile */
    CANVAS_MAP_BLOCK = 31,
};

/* Makes each place of the map show its own tile. */
void canvas_reset(void);

/* Sets one pixel of a tile, shared or not. */
void canvas_tile_pixel(u32 tile, u32 x, u32 y, u8 colour);

void canvas_pixel(u32 x, u32 y, u8 colour);

/* Sets two neighbouring pixels at once. The left one must be in an even column. */
void canvas_pair(u32 x, u32 y, u8 left, u8 right);

void canvas_rectangle(u32 x, u32 y, u32 width, u32 height, u8 colour);

/* Paints a rectangle with round corners of `corner` pixels. */
void canvas_panel(u32 x, u32 y, u32 width, u32 height, u32 corner, u8 colour);

void canvas_disc(u32 x, u32 y, i32 radius, u8 colour);

/* canvas_text paints capital letters and digits of 5 by 7 pixels, one every 6 pixels. canvas_small_text paints capital
 * letters of 3 by 5 pixels, one every 4 pixels. Other characters from ' ' to '_' stay blank. `text` must not have
 * characters outside of this range, such as lower-case letters. */
void canvas_text(u32 x, u32 y, const char *text, u8 colour);
void canvas_small_text(u32 x, u32 y, const char *text, u8 colour);

/* Shows a tile at a place of the map. The place is counted in tiles. */
void canvas_show(u32 column, u32 row, u32 tile);

/* Shows the place's own tile again. */
void canvas_restore(u32 column, u32 row);
