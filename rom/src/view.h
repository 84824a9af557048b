/* Shows the lamps, numbers and bricks on the background. Their values come from the public memory. */
#pragma once

/* Brings the screen up to date. Writes only what has changed since the last call. */
void view_update(void);
