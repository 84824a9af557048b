/* The background seen as a picture one can paint on: 240 by 160 pixels of 256 colours.
 *
 * The console shows a map of 8 by 8 tiles. The map's first 600 entries name 600 tiles of their own, so that every pixel
 * can be set; further tiles are shared and put into the map by number, which changes 64 pixels with one write. */
#pragma once
#include "gba.h"

enum {
    CANVAS_COLUMNS = SCREEN_WIDTH / 8,
    CANVAS_ROWS = SCREEN_HEIGHT / 8,
    CANVAS_TILES = CANVAS_COLUMNS * CANVAS_ROWS, /* the first shared tile */
    CANVAS_MAP_BLOCK = 31,
};

/* Each map place shows its own tile. */
void canvas_reset(void);

/* Sets one pixel of a tile, shared or not. */
void canvas_tile_pixel(u32 tile, u32 x, u32 y, u8 colour);

void canvas_pixel(u32 x, u32 y, u8 colour);

/* Two neighbours at once, the left one in an even column. */
void canvas_pair(u32 x, u32 y, u8 left, u8 right);

void canvas_rectangle(u32 x, u32 y, u32 width, u32 height, u8 colour);

/* A rectangle whose corners are cut by `corner` pixels. */
void canvas_panel(u32 x, u32 y, u32 width, u32 height, u32 corner, u8 colour);

void canvas_disc(u32 x, u32 y, i32 radius, u8 colour);

/* Capitals and digits, 5 by 7 pixels every 6, or 3 by 5 every 4. */
void canvas_text(u32 x, u32 y, const char *text, u8 colour);
void canvas_small_text(u32 x, u32 y, const char *text, u8 colour);

/* Shows a tile at a place of the map, counted in tiles. */
void canvas_show(u32 column, u32 row, u32 tile);

/* Shows the place's own tile again. */
void canvas_restore(u32 column, u32 row);
