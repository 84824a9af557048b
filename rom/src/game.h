/* The rules of the game. This code reads and writes the public memory, and draws nothing. */
#pragma once
#include "memory_map.h"

/* The game's public memory; see memory-map.toml. */
extern struct memory mem;

/* What happened in one frame, for the picture and the sound. */
struct events {
    u8 hits;         /* how many bricks broke, at most two: one by the horizontal and one by the vertical move */
    u8 hit_cells[2]; /* these bricks, as indices into mem.bricks */
    bool bounced;    /* the ball bounced off a wall */
    bool returned;   /* the paddle returned the ball */
    bool lost;       /* the ball was lost */
    bool cleared;    /* the last brick of the level broke */
};

/* Clears the public memory, except `scratch`, and begins the first game. */
void game_power_on(void);

/* Plays one frame with the keys in mem.held. `pressed` has the keys that were pressed in this frame. */
struct events game_step(u16 pressed);
