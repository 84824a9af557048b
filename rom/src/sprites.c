#include "sprites.h"
#include "art.h"

/* The sprites, from front to back. */
enum {
    SLOT_MESSAGE,
    SLOT_FLASH = SLOT_MESSAGE + 4,
    SLOT_BALL = SLOT_FLASH + 4,
    SLOT_TRAIL,
    SLOT_PADDLE = SLOT_TRAIL + 2,
    PADDLE_PIECES = 8,
    SLOTS = 128,
};

enum {
    TILE_BALL,
    TILE_TRAIL,
    TILE_PADDLE = TILE_TRAIL + 2,
    TILE_FLASH = TILE_PADDLE + 3, /* full, then fading: two tiles each */
    TILE_MESSAGE = TILE_FLASH + 4,
};

enum shape { SQUARE_8 = 0, WIDE_16_8 = 0x4000, WIDE_32_16 = 0x4000 };
enum size { SIZE_SMALL = 0, SIZE_32_16 = 0x8000 };
enum { HIDDEN = 0x0200, FLASHES = 4, FLASH_FRAMES = 8 };

/* A message is 128 pixels wide: four sprites next to each other. Its letters are twice as large as in the font. */
enum { MESSAGE_PIECES = 4, MESSAGE_TILES = 32, MESSAGE_X = 56, MESSAGE_Y = 76, INK = 12, SHADOW = 13 };
static const char *const messages[] = {
    [STATE_SERVE] = "GET READY",
    [STATE_PLAY] = "",
    [STATE_CLEARED] = "CLEARED",
    [STATE_OVER] = "GAME OVER",
};
enum { MESSAGES = sizeof messages / sizeof messages[0] };

static struct {
    u8 cell, frames;
} flashes[FLASHES];
static u8 next_flash;
static i16 trail_x[4], trail_y[4]; /* the ball's last positions, beginning with the latest */

static void place(u32 slot, i32 x, i32 y, u32 tile, enum shape shape, enum size size)
{
    OAM[slot * 4] = (y & 0xFF) | shape;
    OAM[slot * 4 + 1] = (x & 0x1FF) | size;
    OAM[slot * 4 + 2] = tile;
}

static void hide(u32 slot)
{
    OAM[slot * 4] = HIDDEN;
}

static void load(u32 tile, const u32 *words, u32 count)
{
    for (u32 i = 0; i < count; i++)
        OBJ_TILES[tile * 8 + i] = words[i];
}
#define LOAD(tile, sprite) load(tile, sprite, sizeof sprite / sizeof sprite[0])

/* Sets a pixel of a message. Its pieces of 32 by 16 pixels are stored one after the other. Each is four tiles wide. */
static void message_pixel(u32 first_tile, u32 x, u32 y, u32 colour)
{
    u32 tile = first_tile + x / 32 * 8 + y / 8 * 4 + x % 32 / 8;
    volatile u32 *row = &OBJ_TILES[tile * 8 + y % 8];
    u32 shift = x % 8 * 4;
    *row = (*row & ~(15u << shift)) | colour << shift;
}

static void draw_message(u32 first_tile, const char *text, u32 shift, u32 colour)
{
    u32 length = 0;
    while (text[length])
        length++;
    u32 left = (128 - length * 12) / 2 + shift;
    for (u32 i = 0; i < length; i++)
        for (u32 y = 0; y < 14; y++)
            for (u32 x = 0; x < 10; x++)
                if (font_5x7[text[i] - FONT_FIRST][y / 2] >> x / 2 & 1)
                    message_pixel(first_tile, left + i * 12 + x, y + shift, colour);
}

void sprites_load(void)
{
    LOAD(TILE_BALL, sprite_ball);
    LOAD(TILE_TRAIL, sprite_trail_near);
    LOAD(TILE_TRAIL + 1, sprite_trail_far);
    LOAD(TILE_PADDLE, sprite_paddle_left);
    LOAD(TILE_PADDLE + 1, sprite_paddle_middle);
    LOAD(TILE_PADDLE + 2, sprite_paddle_right);
    LOAD(TILE_FLASH, sprite_flash_full);
    LOAD(TILE_FLASH + 2, sprite_flash_fading);
    for (u32 i = 0; i < MESSAGES; i++) {
        draw_message(TILE_MESSAGE + i * MESSAGE_TILES, messages[i], 1, SHADOW);
        draw_message(TILE_MESSAGE + i * MESSAGE_TILES, messages[i], 0, INK);
    }
    for (u32 slot = 0; slot < SLOTS; slot++)
        hide(slot);
}

static void update_ball(void)
{
    for (int i = 3; i > 0; i--) {
        trail_x[i] = trail_x[i - 1];
        trail_y[i] = trail_y[i - 1];
    }
    trail_x[0] = mem.ball_x / 16 - 4;
    trail_y[0] = mem.ball_y / 16 - 4;

    if (mem.state == STATE_OVER)
        hide(SLOT_BALL);
    else
        place(SLOT_BALL, trail_x[0], trail_y[0], TILE_BALL, SQUARE_8, SIZE_SMALL);
    for (u32 i = 0; i < 2; i++) {
        u32 age = i == 0 ? 1 : 3;
        if (mem.state != STATE_PLAY)
            hide(SLOT_TRAIL + i);
        else
            place(SLOT_TRAIL + i, trail_x[age], trail_y[age], TILE_TRAIL + i, SQUARE_8, SIZE_SMALL);
    }
}

static void update_paddle(void)
{
    u32 pieces = mem.paddle_width / (8 * 16);
    i32 x = mem.paddle_x / 16 - (i32)pieces * 4;
    for (u32 i = 0; i < PADDLE_PIECES; i++, x += 8)
        if (i < pieces)
            place(SLOT_PADDLE + i, x, PADDLE_TOP, TILE_PADDLE + (i == 0 ? 0 : i + 1 < pieces ? 1 : 2), SQUARE_8,
                  SIZE_SMALL);
        else
            hide(SLOT_PADDLE + i);
}

static void update_flashes(const struct events *events)
{
    for (u32 i = 0; i < events->hits; i++) {
        flashes[next_flash].cell = events->hit_cells[i];
        flashes[next_flash].frames = FLASH_FRAMES;
        next_flash = (next_flash + 1) % FLASHES;
    }
    for (u32 i = 0; i < FLASHES; i++) {
        if (flashes[i].frames == 0) {
            hide(SLOT_FLASH + i);
            continue;
        }
        u32 column = flashes[i].cell % BRICK_COLUMNS, row = flashes[i].cell / BRICK_COLUMNS;
        flashes[i].frames--;
        place(SLOT_FLASH + i, BRICKS_LEFT_EDGE + column * BRICK_WIDTH, BRICKS_TOP_EDGE + row * BRICK_HEIGHT,
              TILE_FLASH + (flashes[i].frames >= FLASH_FRAMES / 2 ? 0 : 2), WIDE_16_8, SIZE_SMALL);
    }
}

static void update_message(void)
{
    bool shown = mem.state < MESSAGES && messages[mem.state][0];
    for (u32 i = 0; i < MESSAGE_PIECES; i++)
        if (shown)
            place(SLOT_MESSAGE + i, MESSAGE_X + i * 32, MESSAGE_Y, TILE_MESSAGE + mem.state * MESSAGE_TILES + i * 8,
                  WIDE_32_16, SIZE_32_16);
        else
            hide(SLOT_MESSAGE + i);
}

void sprites_update(const struct events *events)
{
    update_ball();
    update_paddle();
    update_flashes(events);
    update_message();
}
