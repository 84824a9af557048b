/* Short beeps from the console's own tone and noise generators. */
#pragma once
#include "game.h"

void sound_on(void);
void sound_play(const struct events *events);
