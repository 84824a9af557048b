#include "game.h"
#include "levels.h"

enum {
    SUB = 16, /* sixteenths in a pixel */
    RADIUS = BALL_RADIUS * SUB,
    BRICKS = BRICK_COLUMNS * BRICK_ROWS,
    GEMS = 6,
    GEM_FACTOR = 5,
    ROW_POINTS = 10, /* for a brick in the lowest row; in each row above, a brick is worth 10 points more */
    CLEAR_POINTS = 100,
    RALLY_PER_FACTOR = 6, /* how many returns by the paddle raise the factor of all points by one */
    TOP_FACTOR = 5,

    BASE_SPEED = 40,
    LEVEL_SPEED = 3,
    RALLY_PER_SPEED = 3, /* how many returns by the paddle make the ball faster by one sixteenth of a pixel per frame */
    TOP_SPEED = 60,
    LEAST_DX = 5, /* so that the ball does not move straight up and down */
};

__attribute__((section(".public"))) struct memory mem;

static u32 next_random(void)
{
    u32 x = mem.random ? mem.random : DEFAULT_SEED;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return mem.random = x;
}

static i32 clamp(i32 value, i32 least, i32 most)
{
    return value < least ? least : value > most ? most : value;
}

static i32 square_root(i32 n)
{
    i32 root = 0;
    while ((root + 1) * (root + 1) <= n)
        root++;
    return root;
}

static i32 ball_speed(void)
{
    return clamp(BASE_SPEED + LEVEL_SPEED * (mem.level - 1) + mem.rally / RALLY_PER_SPEED, BASE_SPEED, TOP_SPEED);
}

/* Sends the ball upwards at the current speed. `dx` is the wanted horizontal component; it is kept within limits. */
static void send_up(i32 dx)
{
    i32 speed = ball_speed();
    i32 limit = speed * 7 / 8;
    if (dx > -LEAST_DX && dx < LEAST_DX)
        dx = dx < 0 ? -LEAST_DX : LEAST_DX;
    dx = clamp(dx, -limit, limit);
    mem.ball_dx = dx;
    mem.ball_dy = -square_root(speed * speed - dx * dx);
}

static u16 points_factor(void)
{
    return clamp(1 + mem.rally / RALLY_PER_FACTOR, 1, TOP_FACTOR);
}

static void enter(u16 state, u16 frames)
{
    mem.state = state;
    mem.timer = frames;
}

static void serve(void)
{
    mem.ball_dx = 0;
    mem.ball_dy = 0;
    mem.rally = 0;
    mem.factor = points_factor();
    enter(STATE_SERVE, SERVE_FRAMES);
}

static u16 count_bricks(void)
{
    u16 count = 0;
    for (int cell = 0; cell < BRICKS; cell++)
        count += mem.bricks[cell] != BRICK_GONE;
    return count;
}

static void begin_level(u16 level)
{
    mem.level = level;
    mem.paddle_width = (level <= 2 ? 40 : level <= 4 ? 32 : 24) * SUB;

    const u16 *rows = levels[(u16)(level - 1) % LEVEL_PATTERNS];
    for (int row = 0; row < BRICK_ROWS; row++)
        for (int column = 0; column < BRICK_COLUMNS; column++)
            mem.bricks[row * BRICK_COLUMNS + column] =
                rows[row] >> (BRICK_COLUMNS - 1 - column) & 1 ? BRICK_PLAIN : BRICK_GONE;
    for (int gem = 0; gem < GEMS; gem++) {
        u8 *brick = &mem.bricks[(next_random() >> 8) % BRICKS];
        if (*brick != BRICK_GONE)
            *brick = BRICK_GEM;
    }
    mem.bricks_left = count_bricks();
    serve();
}

static void begin_game(void)
{
    mem.score = 0;
    mem.lives = LIVES;
    mem.paddle_x = (FIELD_LEFT + FIELD_RIGHT) / 2 * SUB;
    begin_level(1);
}

void game_power_on(void)
{
    volatile u8 *bytes = (volatile u8 *)&mem;
    for (u32 i = 0; i < offsetof(struct memory, scratch); i++)
        bytes[i] = 0;
    for (u32 i = 0; i < sizeof mem.key_log / sizeof mem.key_log[0]; i++)
        mem.key_log[i] = 0;
    mem.random = DEFAULT_SEED;
    begin_game();
}

static void add_points(u32 points)
{
    mem.score += points * mem.factor;
    if (mem.score > SCORE_LIMIT)
        mem.score = SCORE_LIMIT;
    if (mem.score > mem.high_score)
        mem.high_score = mem.score;
}

/* Breaks the brick at this point, if there is one. The point is in sixteenths of a pixel. */
static bool break_brick(i32 x, i32 y, struct events *events)
{
    i32 left = x / SUB - BRICKS_LEFT_EDGE, top = y / SUB - BRICKS_TOP_EDGE;
    if (left < 0 || top < 0)
        return false;
    i32 column = left / BRICK_WIDTH, row = top / BRICK_HEIGHT;
    if (column >= BRICK_COLUMNS || row >= BRICK_ROWS)
        return false;

    i32 cell = row * BRICK_COLUMNS + column;
    u8 kind = mem.bricks[cell];
    if (kind == BRICK_GONE)
        return false;
    mem.bricks[cell] = BRICK_GONE;
    add_points((BRICK_ROWS - row) * ROW_POINTS * (kind == BRICK_GEM ? GEM_FACTOR : 1));
    events->hit_cells[events->hits++] = cell;
    return true;
}

/* Moves the ball horizontally. Checks two points on the ball's leading edge, so that the ball cannot pass between the
 * corners of two bricks. */
static void move_horizontally(struct events *events)
{
    i32 x = mem.ball_x + mem.ball_dx, y = mem.ball_y;
    if (x < FIELD_LEFT * SUB + RADIUS || x > FIELD_RIGHT * SUB - RADIUS) {
        x = clamp(x, FIELD_LEFT * SUB + RADIUS, FIELD_RIGHT * SUB - RADIUS);
        mem.ball_dx = -mem.ball_dx;
        events->bounced = true;
    }
    i32 edge = mem.ball_dx < 0 ? x - RADIUS : x + RADIUS;
    if (break_brick(edge, y - RADIUS / 2, events) || break_brick(edge, y + RADIUS / 2, events)) {
        mem.ball_dx = -mem.ball_dx;
        return;
    }
    mem.ball_x = x;
}

/* Moves the ball vertically, upwards or downwards, with the same checks. */
static void move_vertically(struct events *events)
{
    i32 x = mem.ball_x, y = mem.ball_y + mem.ball_dy;
    if (y < FIELD_TOP * SUB + RADIUS) {
        y = FIELD_TOP * SUB + RADIUS;
        mem.ball_dy = -mem.ball_dy;
        events->bounced = true;
    }
    i32 edge = mem.ball_dy < 0 ? y - RADIUS : y + RADIUS;
    if (break_brick(x - RADIUS / 2, edge, events) || break_brick(x + RADIUS / 2, edge, events)) {
        mem.ball_dy = -mem.ball_dy;
        return;
    }
    mem.ball_y = y;
}

/* The ball's new direction depends mainly on where it meets the paddle, but also on its old direction and on chance. */
static void meet_paddle(struct events *events)
{
    i32 rest = PADDLE_TOP * SUB - RADIUS, half = mem.paddle_width / 2;
    bool crossed = mem.ball_y >= rest && mem.ball_y - mem.ball_dy <= rest;
    i32 offset = mem.ball_x - mem.paddle_x;
    if (mem.ball_dy <= 0 || !crossed || half == 0 || offset < -half - RADIUS || offset > half + RADIUS)
        return;

    i32 chance = (i32)(next_random() >> 28) - 8;
    mem.rally++;
    mem.factor = points_factor();
    mem.ball_y = rest;
    send_up(mem.ball_dx / 2 + offset * ball_speed() / (half * 2) + chance);
    events->returned = true;
}

static void move_paddle(void)
{
    i32 x = mem.paddle_x, half = mem.paddle_width / 2;
    if (mem.held & KEY_LEFT)
        x -= PADDLE_STEP;
    if (mem.held & KEY_RIGHT)
        x += PADDLE_STEP;
    if (mem.held & KEY_L)
        x -= PADDLE_DASH;
    if (mem.held & KEY_R)
        x += PADDLE_DASH;
    mem.paddle_x = clamp(x, FIELD_LEFT * SUB + half, FIELD_RIGHT * SUB - half);
}

/* Launches the ball at an angle at which it misses a paddle that does not move. */
static void launch(void)
{
    u32 random = next_random();
    i32 dx = ball_speed() * (i32)(44 + (random >> 8) % 8) / 64;
    enter(STATE_PLAY, 0);
    send_up(random >> 31 ? dx : -dx);
}

static void play(struct events *events)
{
    move_horizontally(events);
    move_vertically(events);
    meet_paddle(events);

    if (mem.bricks_left == events->hits) {
        add_points(CLEAR_POINTS * mem.level);
        events->cleared = true;
        enter(STATE_CLEARED, CLEARED_FRAMES);
    } else if (mem.ball_y >= FIELD_BOTTOM * SUB) {
        events->lost = true;
        if (mem.lives > 1) {
            mem.lives--;
            serve();
        } else {
            mem.lives = 0;
            mem.games++;
            mem.last_score = mem.score;
            enter(STATE_OVER, OVER_FRAMES);
        }
    }
}

struct events game_step(u16 pressed)
{
    struct events events = {0};
    mem.bricks_left = count_bricks();
    bool due = mem.timer == 0 || --mem.timer == 0;

    if (mem.state != STATE_OVER)
        move_paddle();
    switch (mem.state) {
    case STATE_SERVE:
        mem.ball_x = mem.paddle_x;
        mem.ball_y = PADDLE_TOP * SUB - RADIUS;
        if (due || pressed & KEY_A)
            launch();
        break;
    case STATE_PLAY:
        play(&events);
        break;
    case STATE_CLEARED:
        if (due)
            begin_level(mem.level + 1);
        break;
    default:
        if (due || pressed & KEY_START)
            begin_game();
    }
    mem.bricks_left -= events.hits;
    return events;
}
