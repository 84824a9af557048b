/* Functions that the compiler may call even without a C library; see -ffreestanding in GCC's manual. */
#include <stddef.h>

void *memset(void *to, int value, size_t count)
{
    for (unsigned char *at = to; count > 0; count--)
        *at++ = value;
    return to;
}

void *memcpy(void *restrict to, const void *restrict from, size_t count)
{
    unsigned char *at = to;
    for (const unsigned char *source = from; count > 0; count--)
        *at++ = *source++;
    return to;
}
