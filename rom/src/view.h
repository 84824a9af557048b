/* Shows the lamps, numbers and bricks for the state in the public memory, on the background. */
#pragma once

/* Brings the screen up to date. Writes only what has changed since the last call. */
void view_update(void);
