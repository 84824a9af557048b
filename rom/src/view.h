/* Shows the lamps, numbers, lives and bricks on the background. Their values come from the
 * game's public memory: see memory-map.toml. */
#pragma once

/* Updates the screen. Writes only what has changed, and at most 5 bricks per call, so that no frame takes too long. The
 * bricks of a new level appear over several calls. */
void view_update(void);
