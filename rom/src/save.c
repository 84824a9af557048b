#include "save.h"
#include "memory_map.h"

/* Emulators and flash cartridges look for this text to find out which kind of save memory to provide. */
__attribute__((used, aligned(4))) static const char kind[] = "SRAM_V113";

/* The save memory has an 8-bit bus, so it can only be accessed byte by byte. */
static volatile u8 *const cells = (volatile u8 *)SAVE_ADDRESS;

static u32 read_word(u32 offset)
{
    u32 word = 0;
    for (u32 i = 0; i < 4; i++)
        word |= (u32)cells[offset + i] << (8 * i);
    return word;
}

static void write_word(u32 offset, u32 word)
{
    for (u32 i = 0; i < 4; i++)
        cells[offset + i] = word >> (8 * i);
}

u32 save_load(void)
{
    u32 score = read_word(SAVE_SCORE_OFFSET);
    bool good = read_word(0) == SAVE_MAGIC && SAVE_MAGIC + score + read_word(SAVE_CHECK_OFFSET) == 0;
    return good && score <= SCORE_LIMIT ? score : 0;
}

void save_store(u32 score)
{
    write_word(0, SAVE_MAGIC);
    write_word(SAVE_SCORE_OFFSET, score);
    write_word(SAVE_CHECK_OFFSET, -(SAVE_MAGIC + score));
}
