#include "view.h"
#include "game.h"
#include "palette.h"
#include "scene.h"

enum {
    BRICKS = BRICK_COLUMNS * BRICK_ROWS,
    BRICKS_A_FRAME = 5, /* at most; a new level appears over several frames, so that no frame takes too long */
};

/* A number on the screen: its position, how many digits it has, the tile of the digit 0, and the value that it shows
 * now. */
struct number {
    u8 column, row, digits;
    u16 tiles;
    u32 shown;
};

enum { NOTHING = 0xFFFFFFFF };
static struct number score = {SCORE_COLUMN, HUD_ROW, 6, HUD_DIGITS, NOTHING};
static struct number factor = {FACTOR_COLUMN, HUD_ROW, 1, HUD_DIGITS, NOTHING};
static struct number best = {BEST_COLUMN, HUD_ROW, 6, HUD_DIGITS, NOTHING};
static struct number level = {LEVEL_COLUMN, HUD_ROW, 2, HUD_DIGITS, NOTHING};
static struct number frame = {FRAME_COLUMN, FRAME_ROW, 8, DISPLAY_DIGITS, NOTHING};

static u8 bricks_shown[BRICKS];
static u16 lives_shown = 0xFFFF;
static u16 lamps_shown;

static void show_number(struct number *number, u32 value)
{
    if (value == number->shown)
        return;
    number->shown = value;
    for (u32 i = number->digits; i-- > 0; value /= 10)
        canvas_show(number->column + i, number->row, number->tiles + value % 10);
}

static void show_bricks(void)
{
    int budget = BRICKS_A_FRAME;
    for (u32 cell = 0; cell < BRICKS && budget; cell++) {
        u8 kind = mem.bricks[cell];
        if (kind == bricks_shown[cell])
            continue;
        bricks_shown[cell] = kind;
        budget--;

        u32 row = cell / BRICK_COLUMNS;
        u32 tile = BRICK_TILES + row * 4 + (kind == BRICK_GEM ? 2 : 0);
        u32 map_column = BRICKS_LEFT_EDGE / 8 + cell % BRICK_COLUMNS * 2, map_row = BRICKS_TOP_EDGE / 8 + row;
        for (u32 half = 0; half < 2; half++)
            if (kind != BRICK_GONE)
                canvas_show(map_column + half, map_row, tile + half);
            else
                canvas_restore(map_column + half, map_row);
    }
}

static void show_lives(void)
{
    if (mem.lives == lives_shown)
        return;
    lives_shown = mem.lives;
    for (u32 i = 0; i < LIVES_SHOWN; i++)
        canvas_show(LIVES_COLUMN + i, HUD_ROW, LIFE_TILES + (i < mem.lives));
}

static void show_lamps(void)
{
    for (int key = 0; key < KEY_COUNT; key++)
        if ((mem.held ^ lamps_shown) >> key & 1)
            palette_lamp(key, mem.held >> key & 1);
    lamps_shown = mem.held;
}

void view_update(void)
{
    show_lamps();
    show_number(&score, mem.score);
    show_number(&factor, mem.factor);
    show_number(&best, mem.high_score);
    show_number(&level, mem.level);
    show_number(&frame, mem.frame);
    show_lives();
    show_bricks();
}
