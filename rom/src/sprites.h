/* Everything that moves, drawn by the console's sprites. */
#pragma once
#include "game.h"

/* Loads the pictures and hides all sprites. */
void sprites_load(void);

/* Shows the ball, the paddle and the message according to `mem` (game.h), and a flash where a brick just broke. */
void sprites_update(const struct events *events);
