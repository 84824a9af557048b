/* The high score in the cartridge's battery-backed memory. */
#pragma once
#include "gba.h"

/* Returns the stored score, or 0 if there is no score or its check fails. */
u32 save_load(void);

void save_store(u32 score);
