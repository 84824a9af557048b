/* The high score on the cartridge's battery-backed memory. */
#pragma once
#include "gba.h"

/* The score kept there, or 0 if there is none or its check fails. */
u32 save_load(void);

void save_store(u32 score);
