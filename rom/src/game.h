/* The rules. They read and write the public memory and draw nothing. */
#pragma once
#include "memory_map.h"

/* The game's public memory; see memory-map.toml. */
extern struct memory mem;

/* What one frame brought, for those who show it and make it heard. */
struct events {
    u8 hits;         /* bricks broken, two at most: one on the way across, one on the way up or down */
    u8 hit_cells[2]; /* which, as indices into mem.bricks */
    bool bounced;    /* off a wall */
    bool returned;   /* by the paddle */
    bool lost;       /* the ball */
    bool cleared;    /* the level */
};

/* Clears the public memory, scratch excepted, and begins the first game. */
void game_power_on(void);

/* Plays one frame with mem.held; `pressed` are the keys that went down in it. */
struct events game_step(u16 pressed);
