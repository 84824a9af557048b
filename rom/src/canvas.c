#include "canvas.h"
#include "art.h"

#define MAP ((volatile u16 *)(VRAM + CANVAS_MAP_BLOCK * 0x800))
enum { MAP_COLUMNS = 32, TILE_BYTES = 64 };

void canvas_reset(void)
{
    for (u32 row = 0; row < CANVAS_ROWS; row++)
        for (u32 column = 0; column < CANVAS_COLUMNS; column++)
            canvas_restore(column, row);
}

static volatile u16 *pair_at(u32 tile, u32 x, u32 y)
{
    return (volatile u16 *)(VRAM + tile * TILE_BYTES + y * 8 + (x & ~1u));
}

static u32 own_tile(u32 x, u32 y)
{
    return y / 8 * CANVAS_COLUMNS + x / 8;
}

/* Video memory cannot be written byte by byte, so a pixel is written together with its neighbour. */
void canvas_tile_pixel(u32 tile, u32 x, u32 y, u8 colour)
{
    volatile u16 *pair = pair_at(tile, x, y);
    *pair = x & 1 ? (*pair & 0x00FF) | colour << 8 : (*pair & 0xFF00) | colour;
}

void canvas_pixel(u32 x, u32 y, u8 colour)
{
    canvas_tile_pixel(own_tile(x, y), x % 8, y % 8, colour);
}

void canvas_pair(u32 x, u32 y, u8 left, u8 right)
{
    *pair_at(own_tile(x, y), x % 8, y % 8) = left | right << 8;
}

void canvas_rectangle(u32 x, u32 y, u32 width, u32 height, u8 colour)
{
    for (u32 row = y; row < y + height; row++) {
        u32 column = x, end = x + width;
        if (column % 2 && column < end)
            canvas_pixel(column++, row, colour);
        for (; column + 2 <= end; column += 2)
            canvas_pair(column, row, colour, colour);
        if (column < end)
            canvas_pixel(column, row, colour);
    }
}

void canvas_panel(u32 x, u32 y, u32 width, u32 height, u32 corner, u8 colour)
{
    for (u32 row = 0; row < height; row++) {
        u32 edge = row < height - 1 - row ? row : height - 1 - row;
        u32 cut = edge < corner ? corner - edge : 0;
        /* `corner - edge` would be a diagonal cut. All lines but the first and the last are cut by about half of it, so
         * that the corner looks round. */
        if (edge && cut)
            cut = (cut + 1) / 2;
        canvas_rectangle(x + cut, y + row, width - 2 * cut, 1, colour);
    }
}

void canvas_disc(u32 x, u32 y, i32 radius, u8 colour)
{
    for (i32 dy = -radius; dy <= radius; dy++)
        for (i32 dx = -radius; dx <= radius; dx++)
            if (dx * dx + dy * dy <= radius * radius + radius)
                canvas_pixel(x + dx, y + dy, colour);
}

static void glyph(u32 x, u32 y, const u8 *rows, u32 height, u8 colour)
{
    for (u32 row = 0; row < height; row++)
        for (u32 bits = rows[row], column = 0; bits; bits >>= 1, column++)
            if (bits & 1)
                canvas_pixel(x + column, y + row, colour);
}

void canvas_text(u32 x, u32 y, const char *text, u8 colour)
{
    for (; *text; text++, x += 6)
        glyph(x, y, font_5x7[*text - FONT_FIRST], 7, colour);
}

void canvas_small_text(u32 x, u32 y, const char *text, u8 colour)
{
    for (; *text; text++, x += 4)
        glyph(x, y, font_3x5[*text - FONT_FIRST], 5, colour);
}

void canvas_show(u32 column, u32 row, u32 tile)
{
    MAP[row * MAP_COLUMNS + column] = tile;
}

void canvas_restore(u32 column, u32 row)
{
    canvas_show(column, row, row * CANVAS_COLUMNS + column);
}
