/* Everything that moves, drawn by the console's sprites. */
#pragma once
#include "game.h"

/* Loads the pictures and hides all sprites. */
void sprites_load(void);

/* Shows the public memory's ball, paddle and message, and what just broke. */
void sprites_update(const struct events *events);
