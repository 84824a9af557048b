#include "scene.h"
#include "art.h"
#include "palette.h"

enum {
    HUD_HEIGHT = 9,
    WALL_TOP = FIELD_TOP - 4,
    FLOOR = FIELD_BOTTOM, /* the desk begins here */
};

/* The thresholds for ordered dithering, in sixteenths of a shade. */
static const u8 dither[4][4] = {{0, 8, 2, 10}, {12, 4, 14, 6}, {3, 11, 1, 9}, {15, 7, 13, 5}};

static void paint_sky(void)
{
    for (u32 y = FIELD_TOP; y < FLOOR; y++) {
        u32 depth = (y - FIELD_TOP) * (SKY_SHADES - 1) * 16 / (FLOOR - FIELD_TOP);
        u8 shades[4];
        for (u32 i = 0; i < 4; i++)
            shades[i] = SKY + (depth + dither[y % 4][i]) / 16;
        for (u32 x = FIELD_LEFT; x < FIELD_RIGHT; x += 2)
            canvas_pair(x, y, shades[x % 4], shades[x % 4 + 1]);
    }
    /* Stars at pseudo-random places, which are always the same. */
    for (u32 i = 0, at = 7; i < 48; i++, at = at * 1103 + 12345) {
        u32 x = FIELD_LEFT + (at >> 4) % (FIELD_RIGHT - FIELD_LEFT);
        canvas_pixel(x, FIELD_TOP + 2 + (at >> 13) % (FLOOR - FIELD_TOP - 16), STAR);
    }
}

static void paint_walls(void)
{
    u32 height = FLOOR - WALL_TOP;
    canvas_rectangle(0, WALL_TOP, FIELD_LEFT, height, WALL);
    canvas_rectangle(FIELD_RIGHT, WALL_TOP, SCREEN_WIDTH - FIELD_RIGHT, height, WALL);
    canvas_rectangle(0, WALL_TOP, SCREEN_WIDTH, FIELD_TOP - WALL_TOP, WALL);
    canvas_rectangle(0, WALL_TOP, SCREEN_WIDTH, 1, WALL_LIGHT);
    canvas_rectangle(0, WALL_TOP, 1, height, WALL_LIGHT);
    canvas_rectangle(FIELD_RIGHT, FIELD_TOP, 1, height - 4, WALL_LIGHT);
    canvas_rectangle(FIELD_LEFT, FIELD_TOP - 1, FIELD_RIGHT - FIELD_LEFT, 1, WALL_DARK);
    canvas_rectangle(FIELD_LEFT - 1, FIELD_TOP - 1, 1, height - 3, WALL_DARK);
    canvas_rectangle(SCREEN_WIDTH - 1, WALL_TOP, 1, height, WALL_DARK);
    for (u32 y = WALL_TOP + 10; y < FLOOR - 4; y += 12) { /* rivets */
        canvas_rectangle(3, y, 2, 2, WALL_DARK);
        canvas_pixel(3, y, WALL_LIGHT);
        canvas_rectangle(FIELD_RIGHT + 3, y, 2, 2, WALL_DARK);
        canvas_pixel(FIELD_RIGHT + 3, y, WALL_LIGHT);
    }
}

static void paint_hud(void)
{
    canvas_rectangle(0, 0, SCREEN_WIDTH, HUD_HEIGHT, HUD_PAPER);
    canvas_rectangle(0, HUD_HEIGHT, SCREEN_WIDTH, 1, HUD_EDGE);
    canvas_text(SCORE_COLUMN * 8 - 34, 1, "SCORE", HUD_LABEL);
    canvas_small_text(FACTOR_COLUMN * 8 - 3, 3, "X", HUD_LABEL);
    canvas_text(BEST_COLUMN * 8 - 15, 1, "HI", HUD_LABEL);
    canvas_text(LEVEL_COLUMN * 8 - 13, 1, "LV", HUD_LABEL);
}

/* The name of each lamp, and the name's position relative to the middle of the lamp. */
static const struct {
    const char *text;
    i8 x, y;
} names[KEY_COUNT] = {
    [LAMP_A] = {"A", -1, 7},           [LAMP_B] = {"B", -1, 7},
    [LAMP_SELECT] = {"SELECT", 8, -2}, [LAMP_START] = {"START", 8, -2},
    [LAMP_RIGHT] = {"RIGHT", 9, -2},   [LAMP_LEFT] = {"LEFT", -23, -2},
    [LAMP_UP] = {"UP", 9, -4},         [LAMP_DOWN] = {"DOWN", 9, 0},
    [LAMP_R] = {"R", -10, -2},         [LAMP_L] = {"L", 8, -2},
};

static void paint_lamp(int key)
{
    u32 x = lamps[key].x, y = lamps[key].y;
    canvas_disc(x, y, 5, GLOW + key);
    canvas_disc(x, y, 4, LAMP + key);
    canvas_small_text(x + names[key].x, y + names[key].y, names[key].text, CASE_LABEL);
}

/* Paints a handheld console seen from above, with a lamp at the place of each key. */
static void paint_console(void)
{
    enum { SIDE = 12, TOP = 118, WIDTH = 216, HEIGHT = 41, SHOULDER = 58 };
    canvas_rectangle(0, FLOOR, SCREEN_WIDTH, SCREEN_HEIGHT - FLOOR, DESK);
    canvas_rectangle(0, FLOOR, SCREEN_WIDTH, 1, DESK_LIGHT);

    canvas_panel(SIDE, TOP, SHOULDER, 20, 5, CASE_DARK);
    canvas_panel(SIDE + WIDTH - SHOULDER, TOP, SHOULDER, 20, 5, CASE_DARK);
    canvas_panel(SIDE, TOP + 1, WIDTH, HEIGHT, 8, CASE_DARK);
    canvas_panel(SIDE, TOP, WIDTH, HEIGHT - 1, 8, CASE_LIGHT);
    canvas_panel(SIDE + 1, TOP + 1, WIDTH - 2, HEIGHT - 2, 7, CASE);

    u32 x = lamps[LAMP_UP].x, y = lamps[LAMP_LEFT].y; /* the middle of the cross */
    canvas_panel(x - 7, y - 17, 15, 35, 2, WELL);
    canvas_panel(x - 17, y - 7, 35, 15, 2, WELL);

    canvas_panel(FRAME_COLUMN * 8 - 5, FRAME_ROW * 8 - 14, 74, 26, 2, DISPLAY_RIM);
    canvas_rectangle(FRAME_COLUMN * 8 - 2, FRAME_ROW * 8 - 11, 68, 20, DISPLAY);
    canvas_text(FRAME_COLUMN * 8 + 5, FRAME_ROW * 8 - 9, "FRAMEWIRE", DISPLAY_DIM);

    for (int key = 0; key < KEY_COUNT; key++)
        paint_lamp(key);
}

static void paint_digits(u32 first_tile, u8 ink, u8 paper)
{
    for (u32 digit = 0; digit < 10; digit++)
        for (u32 y = 0; y < 8; y++)
            for (u32 x = 0; x < 8; x++) {
                u32 bits = y == 0 ? 0 : font_5x7['0' - FONT_FIRST + digit][y - 1];
                canvas_tile_pixel(first_tile + digit, x, y, x > 0 && bits >> (x - 1) & 1 ? ink : paper);
            }
}

static void paint_lives(void)
{
    for (u32 alive = 0; alive < 2; alive++)
        for (i32 y = 0; y < 8; y++)
            for (i32 x = 0; x < 8; x++) {
                i32 dx = 2 * x - 7, dy = 2 * y - 9; /* half pixels from the middle of a ball that is 6 pixels wide */
                bool inside = dx * dx + dy * dy <= 36, shine = dx < 0 && dy < 0 && dx * dx + dy * dy < 16;
                canvas_tile_pixel(LIFE_TILES + alive, x, y,
                                  !inside ? HUD_PAPER : !alive ? LIFE_GONE : shine ? LIFE_LIGHT : LIFE);
            }
}

/* The colour of one pixel of a brick. A brick is 15 by 7 pixels, with a gap to its right and below it. */
static u8 brick_colour(u32 row, u32 x, u32 y, bool gem, u8 background)
{
    u8 light = BRICK + row * BRICK_SHADES;
    if (x == 15 || y == 7)
        return background;
    if (gem) {
        u32 from_middle = (x < 7 ? 7 - x : x - 7) + (y < 3 ? 3 - y : y - 3);
        if (from_middle <= 2)
            return GEM;
        if (from_middle == 3)
            return light;
    }
    return y == 0 || x == 0 ? light : y == 6 || x == 14 ? light + 2 : light + 1;
}

static void paint_bricks(void)
{
    for (u32 row = 0; row < BRICK_ROWS; row++) {
        u32 depth = (BRICKS_TOP_EDGE + row * BRICK_HEIGHT - FIELD_TOP) * (SKY_SHADES - 1) / (FLOOR - FIELD_TOP);
        for (u32 gem = 0; gem < 2; gem++)
            for (u32 y = 0; y < 8; y++)
                for (u32 x = 0; x < 16; x++)
                    canvas_tile_pixel(BRICK_TILES + row * 4 + gem * 2 + x / 8, x % 8, y,
                                      brick_colour(row, x, y, gem, SKY + depth));
    }
}

void scene_paint(void)
{
    canvas_reset();
    paint_hud();
    paint_sky();
    paint_walls();
    paint_console();
    paint_digits(HUD_DIGITS, HUD_DIGIT, HUD_PAPER);
    paint_digits(DISPLAY_DIGITS, DISPLAY_INK, DISPLAY);
    paint_lives();
    paint_bricks();
}
