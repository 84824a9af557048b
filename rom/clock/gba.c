/* A game that reads the cartridge's clock in each frame, in the same way as other games with a clock: bit by bit over
 * the cartridge's pins. */
#include <stdint.h>

#define REG16(address) (*(volatile uint16_t*) (address))
#define BACKDROP REG16(0x05000000)
#define DISPLAY_CONTROL REG16(0x04000000)
#define DISPLAY_LINE REG16(0x04000006)

/* The cartridge's pins: their levels, which of them the console drives, and whether they can be read. */
#define PINS REG16(0x080000C4)
#define DIRECTION REG16(0x080000C6)
#define READABLE REG16(0x080000C8)
enum { CLOCK = 1, DATA = 2, SELECT = 4 };

enum { READ_ALL = 0x65, FIELDS = 7, SECONDS = 6 };

/* Tests find these values in work RAM. The fields are year, month, day, weekday, hour, minute and second, each as
 * two decimal digits. */
#define FIELD ((volatile uint8_t*) 0x02000000)
#define FRAMES (*(volatile uint32_t*) 0x02000008)
/* A checksum of all seconds that have been read so far. Runs that differ in one frame have different sums from then on. */
#define SUM (*(volatile uint32_t*) 0x0200000C)

static void send(unsigned command) {
	for (int bit = 7; bit >= 0; --bit) {
		unsigned data = command >> bit & 1 ? DATA : 0;
		PINS = data | SELECT;
		PINS = data | SELECT | CLOCK;
	}
}

static unsigned receive(void) {
	unsigned value = 0;
	for (int bit = 0; bit < 8; ++bit) {
		PINS = SELECT;
		PINS = SELECT | CLOCK;
		value |= (PINS & DATA ? 1u : 0u) << bit;
	}
	return value;
}

static void read_clock(void) {
	READABLE = 1;
	PINS = CLOCK;
	DIRECTION = CLOCK | DATA | SELECT;
	PINS = CLOCK | SELECT;
	send(READ_ALL);
	DIRECTION = CLOCK | SELECT;
	for (int field = 0; field < FIELDS; ++field) {
		FIELD[field] = receive();
	}
	PINS = CLOCK;
}

void game(void) {
	DISPLAY_CONTROL = 0;
	FRAMES = 0;
	SUM = 0;
	for (;;) {
		while (DISPLAY_LINE != 160) {
		}
		read_clock();
		++FRAMES;
		SUM = SUM * 31 + FIELD[SECONDS];
		BACKDROP = FIELD[SECONDS] * 257;
		while (DISPLAY_LINE == 160) {
		}
	}
}
