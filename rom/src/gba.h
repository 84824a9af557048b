/* The console's registers and memory, with their usual names, and integer types. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef int8_t i8;
typedef int16_t i16;
typedef int32_t i32;

#define REG16(address) (*(volatile u16 *)(address))

#define REG_DISPCNT REG16(0x04000000)
#define DISPCNT_OBJ_1D 0x0040
#define DISPCNT_BG0 0x0100
#define DISPCNT_OBJ 0x1000
#define REG_DISPSTAT REG16(0x04000004)
#define DISPSTAT_VBLANK_IRQ 0x0008
#define REG_BG0CNT REG16(0x04000008)
#define BGCNT_256_COLOURS 0x0080
#define BGCNT_MAP(block) ((block) << 8)

#define REG_SOUND1CNT_L REG16(0x04000060)
#define REG_SOUND1CNT_H REG16(0x04000062)
#define REG_SOUND1CNT_X REG16(0x04000064)
#define REG_SOUND4CNT_L REG16(0x04000078)
#define REG_SOUND4CNT_H REG16(0x0400007C)
#define REG_SOUNDCNT_L REG16(0x04000080)
#define REG_SOUNDCNT_H REG16(0x04000082)
#define REG_SOUNDCNT_X REG16(0x04000084)

#define REG_KEYINPUT REG16(0x04000130)
#define REG_IE REG16(0x04000200)
#define REG_IME REG16(0x04000208)
#define IRQ_VBLANK 0x0001
#define REG_WAITCNT REG16(0x04000204)
#define WAITCNT_FAST_ROM 0x4317 /* ROM with 3 and 1 wait cycles and prefetch; cartridge RAM with 8 wait cycles */

#define BG_PALETTE ((volatile u16 *)0x05000000)
#define OBJ_PALETTE ((volatile u16 *)0x05000200)
#define VRAM 0x06000000
#define OBJ_TILES ((volatile u32 *)0x06010000)
#define OAM ((volatile u16 *)0x07000000)

enum { SCREEN_WIDTH = 240, SCREEN_HEIGHT = 160 };

/* Halts the processor until the next vertical blank begins. The compiler then assumes that memory has changed, because
 * programs outside of the console may have written to it. */
static inline void wait_for_vblank(void)
{
    __asm__ volatile("swi 0x05" ::: "r0", "r1", "r2", "r3", "memory");
}
