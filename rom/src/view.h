/* Keeps the background in step with the public memory: lamps, numbers, bricks. */
#pragma once

/* Brings the screen up to date. Writes only what has changed since the last call. */
void view_update(void);
