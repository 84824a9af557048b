/* Runs a Game Boy's processor in whole instructions.
 *
 * libmgba runs it in steps of four clocks, each with two calls through function pointers, because an event can fall
 * into any step. Most instructions end before the next event and do not depend on the exact time. This file runs
 * such an instruction in one step, with the same results as libmgba: the registers, the values on the buses, and the time.
 * libmgba runs all other instructions. If a loop only waits for the next event, its repetitions are skipped. */
#include "internal.h"

#ifndef FW_HAVE_AUDIO_BUFFER

#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gb/io.h>
#include <mgba/internal/sm83/sm83.h>

enum { CARRY = 0x10, HALF = 0x20, SUBTRACT = 0x40, ZERO = 0x80, UNUSED_FLAGS = 0x0F };

static inline void set_flags(struct SM83Core* cpu, unsigned kept, unsigned flags) {
	cpu->f.packed = (cpu->f.packed & (kept | UNUSED_FLAGS)) | flags;
}

static inline unsigned zero(uint8_t value) {
	return value ? 0 : ZERO;
}

static inline unsigned carry(const struct SM83Core* cpu) {
	return (cpu->f.packed & CARRY) ? 1 : 0;
}

/* ---- arithmetic ---- */

static inline void add_with(struct SM83Core* cpu, unsigned operand, unsigned more) {
	unsigned sum = cpu->a + operand + more;
	unsigned low = (cpu->a & 0xF) + (operand & 0xF) + more;
	cpu->a = sum;
	set_flags(cpu, 0, zero(sum) | (low & 0x10) << 1 | (sum & 0x100) >> 4);
}

static inline uint8_t subtract(struct SM83Core* cpu, unsigned operand, unsigned more) {
	unsigned difference = cpu->a - operand - more;
	unsigned low = (cpu->a & 0xF) - (operand & 0xF) - more;
	set_flags(cpu, 0, zero(difference) | SUBTRACT | (low & 0x10) << 1 | (difference & 0x100) >> 4);
	return difference;
}

static inline void add(struct SM83Core* cpu, uint8_t operand) {
	add_with(cpu, operand, 0);
}

static inline void adc(struct SM83Core* cpu, uint8_t operand) {
	add_with(cpu, operand, carry(cpu));
}

static inline void sub(struct SM83Core* cpu, uint8_t operand) {
	cpu->a = subtract(cpu, operand, 0);
}

static inline void sbc(struct SM83Core* cpu, uint8_t operand) {
	cpu->a = subtract(cpu, operand, carry(cpu));
}

static inline void compare(struct SM83Core* cpu, uint8_t operand) {
	subtract(cpu, operand, 0);
}

static inline void and(struct SM83Core* cpu, uint8_t operand) {
	cpu->a &= operand;
	set_flags(cpu, 0, zero(cpu->a) | HALF);
}

static inline void xor(struct SM83Core* cpu, uint8_t operand) {
	cpu->a ^= operand;
	set_flags(cpu, 0, zero(cpu->a));
}

static inline void or(struct SM83Core* cpu, uint8_t operand) {
	cpu->a |= operand;
	set_flags(cpu, 0, zero(cpu->a));
}

static inline uint8_t increment(struct SM83Core* cpu, uint8_t value) {
	unsigned half = (value & 0xF) == 0xF ? HALF : 0;
	++value;
	set_flags(cpu, CARRY, zero(value) | half);
	return value;
}

static inline uint8_t decrement(struct SM83Core* cpu, uint8_t value) {
	unsigned half = (value & 0xF) == 0 ? HALF : 0;
	--value;
	set_flags(cpu, CARRY, zero(value) | SUBTRACT | half);
	return value;
}

static inline void add_to_hl(struct SM83Core* cpu, unsigned operand) {
	unsigned sum = cpu->hl + operand;
	unsigned low = (cpu->hl & 0xFFF) + (operand & 0xFFF);
	cpu->hl = sum;
	set_flags(cpu, ZERO, (low & 0x1000) >> 7 | (sum & 0x10000) >> 12);
}

/* The operations of the prefix 0xCB that change a value: rotations and shifts, and bits that are cleared or set. */
static inline uint8_t change(struct SM83Core* cpu, uint8_t operation, uint8_t value) {
	unsigned bit = 1 << (operation >> 3 & 7);
	if (operation >= 0xC0) {
		return value | bit;
	}
	if (operation >= 0x80) {
		return value & ~bit;
	}
	unsigned high = value >> 7;
	unsigned low = value & 1;
	unsigned out = high;
	switch (operation >> 3) {
	case 0: /* RLC */
		value = value << 1 | high;
		break;
	case 1: /* RRC */
		value = value >> 1 | low << 7;
		out = low;
		break;
	case 2: /* RL */
		value = value << 1 | carry(cpu);
		break;
	case 3: /* RR */
		value = value >> 1 | carry(cpu) << 7;
		out = low;
		break;
	case 4: /* SLA */
		value <<= 1;
		break;
	case 5: /* SRA */
		value = value >> 1 | high << 7;
		out = low;
		break;
	case 6: /* SWAP */
		value = value << 4 | value >> 4;
		out = 0;
		break;
	default: /* SRL */
		value >>= 1;
		out = low;
		break;
	}
	set_flags(cpu, 0, zero(value) | out << 4);
	return value;
}

static inline void test_bit(struct SM83Core* cpu, uint8_t operation, uint8_t value) {
	set_flags(cpu, CARRY, zero(value & (1 << (operation >> 3 & 7))) | HALF);
}

/* The register in the last three bits of an instruction; NULL for memory at HL. */
static inline uint8_t* named_register(struct SM83Core* cpu, uint8_t instruction) {
	switch (instruction & 7) {
	case 0:
		return &cpu->b;
	case 1:
		return &cpu->c;
	case 2:
		return &cpu->d;
	case 3:
		return &cpu->e;
	case 4:
		return &cpu->h;
	case 5:
		return &cpu->l;
	case 6:
		return NULL;
	default:
		return &cpu->a;
	}
}

/* ---- memory ---- */

/* The place of a byte of memory, or NULL if it cannot be read and written directly. */
static inline uint8_t* find_ram(struct GB* gb, uint16_t address) {
	struct GBMemory* memory = &gb->memory;
	if (address < GB_BASE_VRAM) {
		return NULL;
	}
	if (address >= GB_BASE_WORKING_RAM_BANK0 && address < GB_BASE_OAM) {
		uint8_t* bank = (address & 0x1000) ? memory->wramBank : memory->wram;
		return &bank[address & (GB_SIZE_WORKING_RAM_BANK0 - 1)];
	}
	if (address >= GB_BASE_HRAM) {
		return address == GB_BASE_IE ? NULL : &memory->hram[address & GB_SIZE_HRAM];
	}
	if (address < GB_BASE_EXTERNAL_RAM && gb->video.mode != 3 && !gb->video.renderer->cache) {
		return &gb->video.vramBank[address & (GB_SIZE_VRAM_BANK0 - 1)];
	}
	return NULL;
}

/* Reads a byte that is not in the ROM. Returns false if the byte cannot be read directly. */
static inline bool load(struct GB* gb, uint16_t address, uint8_t* value) {
	const uint8_t* ram = find_ram(gb, address);
	if (ram) {
		*value = *ram;
		return true;
	}
	/* Games wait for changes of these registers. Only events change them. */
	switch (address) {
	case GB_BASE_IO + GB_REG_LY:
	case GB_BASE_IO + GB_REG_DIV:
	case GB_BASE_IO + GB_REG_LCDC:
		*value = gb->memory.io[address - GB_BASE_IO];
		return true;
	case GB_BASE_IO + GB_REG_STAT:
		*value = gb->memory.io[GB_REG_STAT] | 0x80;
		return true;
	case GB_BASE_IO + GB_REG_IF:
		*value = gb->memory.io[GB_REG_IF] | 0xE0;
		return true;
	default:
		return false;
	}
}

/* Whether memory is as these functions expect it: no DMA, and no cartridge whose functions must handle each access. */
static bool is_plain(const struct GB* gb) {
	const struct GBMemory* memory = &gb->memory;
	return !memory->dmaRemaining && !memory->mbcReadBank0 && !memory->mbcReadBank1 && !memory->mbcReadHigh &&
		!memory->mbcWriteHigh && memory->mbcType != GB_MBC6 && memory->mbcType != GB_UNL_NT_NEW;
}

/* Whether the processor reads instructions from the bank of the ROM that `pc` is in. */
static inline bool runs_rom(const struct GB* gb, const struct SM83Core* cpu, uint16_t pc) {
	const uint8_t* bank = pc & GB_BASE_CART_BANK1 ? gb->memory.romBank : gb->memory.romBase;
	return pc < GB_BASE_VRAM && cpu->memory.activeRegion == bank &&
		cpu->memory.activeMask == GB_SIZE_CART_BANK0 - 1 && cpu->memory.cpuLoad8 != GBLoad8;
}

/* ---- loops that wait ---- */

/* The state of the processor after a jump back. */
struct jump {
	uint64_t registers; /* A, F, B, C, D, E, H and L */
	uint16_t sp;
	uint16_t pc;
	int left;
};

static inline struct jump record_jump(const struct SM83Core* cpu, uint16_t pc, int left) {
	struct jump jump = { .sp = cpu->sp, .pc = pc, .left = left };
	memcpy(&jump.registers, &cpu->regs, sizeof(jump.registers));
	return jump;
}

/* Returns the time that is left for instructions after a jump back. Only events and stores change the memory that the
 * instructions here read. So if an iteration of a loop has changed neither a register nor memory, all iterations until
 * the next event are the same, and their time is subtracted. */
static inline int skip_iterations(struct jump* before, const struct jump* now, bool changed) {
	int iteration = before->left - now->left;
	bool same = now->registers == before->registers && now->sp == before->sp && now->pc == before->pc;
	*before = *now;
	return same && !changed ? now->left % iteration : now->left;
}

/* ---- instructions ---- */

/* Leaves run_instructions if the instruction takes longer than the time until the next event. */
#define TAKES(CYCLES) \
	if (left < (CYCLES)) { \
		goto out; \
	}
#define ENDS(CYCLES, BYTES, BUS) \
	left -= (CYCLES); \
	cpu->bus = cart_bus = (BUS); \
	cart_pc = pc + (BYTES) - 1; \
	pc += (BYTES);
/* Used after ENDS if an instruction does not leave its last byte on the bus. */
#define LEAVES(INDEX, BUS) \
	cpu->index = (INDEX); \
	cpu->bus = (BUS);
#define LOADS(ADDRESS, BYTES) \
	uint16_t address = (ADDRESS); \
	uint8_t value; \
	uint16_t read_at = pc + (BYTES); \
	bool in_rom = address < GB_BASE_VRAM; \
	if (in_rom) { \
		if (address >= rom_size) { \
			goto out; \
		} \
		value = (address & 0x4000 ? gb->memory.romBank : gb->memory.romBase)[address & (GB_SIZE_CART_BANK0 - 1)]; \
	} else if (!load(gb, address, &value)) { \
		goto out; \
	}
/* Used after ENDS by instructions with LOADS. */
#define LOADED \
	LEAVES(address, value) \
	if (in_rom) { \
		cart_bus = value; \
		cart_pc = read_at; \
	}
#define STORES(ADDRESS) \
	uint16_t address = (ADDRESS); \
	uint8_t* place = find_ram(gb, address); \
	if (!place) { \
		goto out; \
	}
#define PUT(PLACE, VALUE) \
	{ \
		uint8_t* changing = (PLACE); \
		uint8_t byte_put = (VALUE); \
		changed |= *changing ^ byte_put; \
		*changing = byte_put; \
	}
#define BYTE(AT) region[(pc + (AT)) & (GB_SIZE_CART_BANK0 - 1)]
#define WORD (BYTE(1) | BYTE(2) << 8)

#define REGISTERS(OPERATION, FIRST, STEP) \
	OPERATION((FIRST), cpu->b) \
	OPERATION((FIRST) + 1 * (STEP), cpu->c) \
	OPERATION((FIRST) + 2 * (STEP), cpu->d) \
	OPERATION((FIRST) + 3 * (STEP), cpu->e) \
	OPERATION((FIRST) + 4 * (STEP), cpu->h) \
	OPERATION((FIRST) + 5 * (STEP), cpu->l) \
	OPERATION((FIRST) + 7 * (STEP), cpu->a)

#define CASE_LOAD_REGISTER(CODE, TARGET, SOURCE) \
	case CODE: \
		TAKES(1) \
		TARGET = SOURCE; \
		ENDS(1, 1, CODE) \
		break;
#define CASE_LOAD_B(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->b, SOURCE)
#define CASE_LOAD_C(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->c, SOURCE)
#define CASE_LOAD_D(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->d, SOURCE)
#define CASE_LOAD_E(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->e, SOURCE)
#define CASE_LOAD_H(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->h, SOURCE)
#define CASE_LOAD_L(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->l, SOURCE)
#define CASE_LOAD_A(CODE, SOURCE) CASE_LOAD_REGISTER(CODE, cpu->a, SOURCE)

#define CASE_LOAD_BYTE(CODE, TARGET) \
	case CODE: { \
		TAKES(2) \
		uint8_t byte = BYTE(1); \
		TARGET = byte; \
		ENDS(2, 2, byte) \
		break; \
	}
#define CASE_LOAD_AT_HL(CODE, TARGET) \
	case CODE: { \
		TAKES(2) \
		LOADS(cpu->hl, 1) \
		ENDS(2, 1, CODE) \
		LOADED \
		TARGET = value; \
		break; \
	}
#define CASE_STORE_AT_HL(CODE, SOURCE) \
	case CODE: { \
		TAKES(2) \
		STORES(cpu->hl) \
		PUT(place, SOURCE) \
		ENDS(2, 1, CODE) \
		LEAVES(address, SOURCE) \
		break; \
	}
#define CASE_INCREMENT(CODE, TARGET) \
	case CODE: \
		TAKES(1) \
		TARGET = increment(cpu, TARGET); \
		ENDS(1, 1, CODE) \
		break;
#define CASE_DECREMENT(CODE, TARGET) \
	case CODE: \
		TAKES(1) \
		TARGET = decrement(cpu, TARGET); \
		ENDS(1, 1, CODE) \
		break;
#define CASE_CHANGE_AT_HL(CODE, CHANGE) \
	case CODE: { \
		TAKES(3) \
		STORES(cpu->hl) \
		PUT(place, CHANGE(cpu, *place)) \
		ENDS(3, 1, CODE) \
		LEAVES(address, *place) \
		break; \
	}

#define CASE_COMPUTE_ONE(CODE, OPERATION, SOURCE) \
	case CODE: \
		TAKES(1) \
		OPERATION(cpu, SOURCE); \
		ENDS(1, 1, CODE) \
		break;
#define CASES_COMPUTE(FIRST, OPERATION) \
	CASE_COMPUTE_ONE((FIRST) + 0, OPERATION, cpu->b) \
	CASE_COMPUTE_ONE((FIRST) + 1, OPERATION, cpu->c) \
	CASE_COMPUTE_ONE((FIRST) + 2, OPERATION, cpu->d) \
	CASE_COMPUTE_ONE((FIRST) + 3, OPERATION, cpu->e) \
	CASE_COMPUTE_ONE((FIRST) + 4, OPERATION, cpu->h) \
	CASE_COMPUTE_ONE((FIRST) + 5, OPERATION, cpu->l) \
	case (FIRST) + 6: { \
		TAKES(2) \
		LOADS(cpu->hl, 1) \
		ENDS(2, 1, (FIRST) + 6) \
		LOADED \
		OPERATION(cpu, value); \
		break; \
	} \
	CASE_COMPUTE_ONE((FIRST) + 7, OPERATION, cpu->a) \
	case (FIRST) + 0x46: { \
		TAKES(2) \
		uint8_t byte = BYTE(1); \
		OPERATION(cpu, byte); \
		ENDS(2, 2, byte) \
		break; \
	}

#define CASE_LOAD_WORD(CODE, TARGET) \
	case CODE: { \
		TAKES(3) \
		uint16_t word = WORD; \
		TARGET = word; \
		ENDS(3, 3, word >> 8) \
		break; \
	}
#define CASE_WIDE(CODE, EFFECT) \
	case CODE: \
		TAKES(2) \
		EFFECT; \
		ENDS(2, 1, CODE) \
		break;
#define CASE_LOAD_A_FROM(CODE, ADDRESS, AFTER) \
	case CODE: { \
		TAKES(2) \
		LOADS(ADDRESS, 1) \
		ENDS(2, 1, CODE) \
		LOADED \
		AFTER; \
		cpu->a = value; \
		break; \
	}
#define CASE_STORE_A_TO(CODE, ADDRESS, AFTER) \
	case CODE: { \
		TAKES(2) \
		STORES(ADDRESS) \
		PUT(place, cpu->a) \
		AFTER; \
		ENDS(2, 1, CODE) \
		LEAVES(address, cpu->a) \
		break; \
	}

/* Used after ENDS. A jump within a bank of the ROM stays in the same region of memory. */
#define JUMPS(TARGET) \
	{ \
		uint16_t target = (TARGET); \
		bool back = target < pc; \
		bool same = !((target ^ pc) & ~(GB_SIZE_CART_BANK0 - 1)); \
		pc = target; \
		if (!same) { \
			cpu->memory.setActiveRegion(cpu, pc); \
			goto in; \
		} \
		if (back) { \
			struct jump now = record_jump(cpu, pc, left); \
			left = skip_iterations(&jump, &now, changed); \
			changed = 0; \
		} \
	}
#define CASE_JUMP_NEAR(CODE, CONDITION) \
	case CODE: { \
		bool jumps = CONDITION; \
		TAKES(2 + jumps) \
		int8_t distance = BYTE(1); \
		cpu->condition = jumps; \
		ENDS(2 + jumps, 2, distance) \
		if (jumps) { \
			JUMPS(pc + distance) \
		} \
		break; \
	}
#define CASE_JUMP(CODE, CONDITION) \
	case CODE: { \
		bool jumps = CONDITION; \
		TAKES(3 + jumps) \
		uint16_t word = WORD; \
		cpu->condition = jumps; \
		cpu->index = word & 0xFF; \
		ENDS(3 + jumps, 3, word >> 8) \
		if (jumps) { \
			JUMPS(word) \
		} \
		break; \
	}
#define PUSHES(WORD_PUSHED) \
	uint16_t pushed = (WORD_PUSHED); \
	uint8_t* high = find_ram(gb, cpu->sp - 1); \
	uint8_t* low = find_ram(gb, cpu->sp - 2); \
	if (!high || !low) { \
		goto out; \
	} \
	PUT(high, pushed >> 8) \
	PUT(low, pushed) \
	cpu->sp -= 2;
#define POPS \
	uint8_t* low = find_ram(gb, cpu->sp); \
	uint8_t* high = find_ram(gb, cpu->sp + 1); \
	if (!low || !high) { \
		goto out; \
	} \
	uint16_t popped = *low | *high << 8; \
	cpu->sp += 2;
#define CASE_CALL(CODE, CONDITION) \
	case CODE: { \
		uint16_t word = WORD; \
		if (CONDITION) { \
			TAKES(6) \
			PUSHES(pc + 3) \
			cpu->condition = true; \
			ENDS(6, 3, word >> 8) \
			LEAVES(cpu->sp, pushed) \
			JUMPS(word) \
		} else { \
			TAKES(3) \
			cpu->condition = false; \
			cpu->index = word & 0xFF; \
			ENDS(3, 3, word >> 8) \
		} \
		break; \
	}
#define CASE_RESTART(CODE) \
	case CODE: { \
		TAKES(4) \
		PUSHES(pc + 1) \
		ENDS(4, 1, CODE) \
		LEAVES(cpu->sp, pushed) \
		JUMPS((CODE) & 0x38) \
		break; \
	}
#define CASE_RETURN(CODE, CONDITION, MORE) \
	case CODE: \
		if (CONDITION) { \
			TAKES(4 + (MORE)) \
			POPS \
			cpu->condition = true; \
			ENDS(4 + (MORE), 1, CODE) \
			LEAVES(cpu->sp - 1, popped >> 8) \
			JUMPS(popped) \
		} else { \
			TAKES(2) \
			cpu->condition = false; \
			ENDS(2, 1, CODE) \
		} \
		break;
#define CASE_PUSH(CODE, SOURCE) \
	case CODE: { \
		TAKES(4) \
		PUSHES(SOURCE) \
		ENDS(4, 1, CODE) \
		LEAVES(cpu->sp, pushed) \
		break; \
	}
#define CASE_POP(CODE, TARGET) \
	case CODE: { \
		TAKES(3) \
		POPS \
		TARGET = popped; \
		cpu->f.packed &= 0xF0; \
		ENDS(3, 1, CODE) \
		LEAVES(cpu->sp - 1, popped >> 8) \
		break; \
	}
#define CASE_ROTATE_A(CODE) \
	case CODE: \
		TAKES(1) \
		cpu->a = change(cpu, CODE, cpu->a); \
		cpu->f.packed &= ~ZERO; \
		ENDS(1, 1, CODE) \
		break;

#define IS_ZERO ((cpu->f.packed & ZERO) != 0)
#define IS_CARRY ((cpu->f.packed & CARRY) != 0)

/* Runs instructions from the ROM, up to one that this function does not support, or until the next event is near. */
static void run_instructions(struct GB* gb, struct SM83Core* cpu) {
	uint16_t pc = cpu->pc;
	const size_t rom_size = gb->memory.romSize;
	/* In cycles of four clocks. libmgba handles each of the last three clocks before an event. */
	const int all = (cpu->nextEvent - cpu->cycles - 1 + cpu->tMultiplier) / (4 * cpu->tMultiplier);
	int left = all;
	uint8_t cart_bus = 0;
	uint16_t cart_pc = 0;
	struct jump jump = { .left = all };
	uint8_t changed = 1; /* not 0 if memory has changed since that jump */
	const uint8_t* region;
	int end;
in:
	if (!runs_rom(gb, cpu, pc)) {
		goto out;
	}
	region = cpu->memory.activeRegion;
	end = cpu->memory.activeRegionEnd;
	while (pc + 2 < end) {
		switch (BYTE(0)) {
		case 0x00:
			TAKES(1)
			ENDS(1, 1, 0x00)
			break;
		REGISTERS(CASE_LOAD_B, 0x40, 1)
		REGISTERS(CASE_LOAD_C, 0x48, 1)
		REGISTERS(CASE_LOAD_D, 0x50, 1)
		REGISTERS(CASE_LOAD_E, 0x58, 1)
		REGISTERS(CASE_LOAD_H, 0x60, 1)
		REGISTERS(CASE_LOAD_L, 0x68, 1)
		REGISTERS(CASE_LOAD_A, 0x78, 1)
		REGISTERS(CASE_LOAD_BYTE, 0x06, 8)
		REGISTERS(CASE_LOAD_AT_HL, 0x46, 8)
		REGISTERS(CASE_STORE_AT_HL, 0x70, 1)
		REGISTERS(CASE_INCREMENT, 0x04, 8)
		REGISTERS(CASE_DECREMENT, 0x05, 8)
		CASE_CHANGE_AT_HL(0x34, increment)
		CASE_CHANGE_AT_HL(0x35, decrement)
		CASES_COMPUTE(0x80, add)
		CASES_COMPUTE(0x88, adc)
		CASES_COMPUTE(0x90, sub)
		CASES_COMPUTE(0x98, sbc)
		CASES_COMPUTE(0xA0, and)
		CASES_COMPUTE(0xA8, xor)
		CASES_COMPUTE(0xB0, or)
		CASES_COMPUTE(0xB8, compare)
		CASE_LOAD_WORD(0x01, cpu->bc)
		CASE_LOAD_WORD(0x11, cpu->de)
		CASE_LOAD_WORD(0x21, cpu->hl)
		CASE_LOAD_WORD(0x31, cpu->sp)
		CASE_WIDE(0x03, ++cpu->bc)
		CASE_WIDE(0x13, ++cpu->de)
		CASE_WIDE(0x23, ++cpu->hl)
		CASE_WIDE(0x33, ++cpu->sp)
		CASE_WIDE(0x0B, --cpu->bc)
		CASE_WIDE(0x1B, --cpu->de)
		CASE_WIDE(0x2B, --cpu->hl)
		CASE_WIDE(0x3B, --cpu->sp)
		CASE_WIDE(0x09, add_to_hl(cpu, cpu->bc))
		CASE_WIDE(0x19, add_to_hl(cpu, cpu->de))
		CASE_WIDE(0x29, add_to_hl(cpu, cpu->hl))
		CASE_WIDE(0x39, add_to_hl(cpu, cpu->sp))
		CASE_WIDE(0xF9, cpu->sp = cpu->hl)
		CASE_LOAD_A_FROM(0x0A, cpu->bc, )
		CASE_LOAD_A_FROM(0x1A, cpu->de, )
		CASE_LOAD_A_FROM(0x2A, cpu->hl, ++cpu->hl)
		CASE_LOAD_A_FROM(0x3A, cpu->hl, --cpu->hl)
		CASE_LOAD_A_FROM(0xF2, 0xFF00 | cpu->c, )
		CASE_STORE_A_TO(0x02, cpu->bc, )
		CASE_STORE_A_TO(0x12, cpu->de, )
		CASE_STORE_A_TO(0x22, cpu->hl, ++cpu->hl)
		CASE_STORE_A_TO(0x32, cpu->hl, --cpu->hl)
		CASE_STORE_A_TO(0xE2, 0xFF00 | cpu->c, )
		case 0x36: {
			TAKES(3)
			STORES(cpu->hl)
			uint8_t byte = BYTE(1);
			ENDS(3, 2, byte)
			PUT(place, byte)
			cpu->index = address;
			break;
		}
		case 0xE0: {
			TAKES(3)
			uint8_t byte = BYTE(1);
			STORES(0xFF00 | byte)
			PUT(place, cpu->a)
			ENDS(3, 2, byte)
			LEAVES(address, cpu->a)
			break;
		}
		case 0xF0: {
			TAKES(3)
			uint8_t byte = BYTE(1);
			LOADS(0xFF00 | byte, 2)
			ENDS(3, 2, byte)
			LOADED
			cpu->a = value;
			break;
		}
		case 0xEA: {
			TAKES(4)
			STORES(WORD)
			PUT(place, cpu->a)
			ENDS(4, 3, address >> 8)
			LEAVES(address, cpu->a)
			break;
		}
		case 0xFA: {
			TAKES(4)
			LOADS(WORD, 3)
			ENDS(4, 3, address >> 8)
			LOADED
			cpu->a = value;
			break;
		}
		CASE_JUMP_NEAR(0x18, true)
		CASE_JUMP_NEAR(0x20, !IS_ZERO)
		CASE_JUMP_NEAR(0x28, IS_ZERO)
		CASE_JUMP_NEAR(0x30, !IS_CARRY)
		CASE_JUMP_NEAR(0x38, IS_CARRY)
		CASE_JUMP(0xC3, true)
		CASE_JUMP(0xC2, !IS_ZERO)
		CASE_JUMP(0xCA, IS_ZERO)
		CASE_JUMP(0xD2, !IS_CARRY)
		CASE_JUMP(0xDA, IS_CARRY)
		CASE_CALL(0xCD, true)
		CASE_CALL(0xC4, !IS_ZERO)
		CASE_CALL(0xCC, IS_ZERO)
		CASE_CALL(0xD4, !IS_CARRY)
		CASE_CALL(0xDC, IS_CARRY)
		CASE_RETURN(0xC9, true, 0)
		CASE_RETURN(0xC0, !IS_ZERO, 1)
		CASE_RETURN(0xC8, IS_ZERO, 1)
		CASE_RETURN(0xD0, !IS_CARRY, 1)
		CASE_RETURN(0xD8, IS_CARRY, 1)
		CASE_RESTART(0xC7)
		CASE_RESTART(0xCF)
		CASE_RESTART(0xD7)
		CASE_RESTART(0xDF)
		CASE_RESTART(0xE7)
		CASE_RESTART(0xEF)
		CASE_RESTART(0xF7)
		CASE_RESTART(0xFF)
		CASE_PUSH(0xC5, cpu->bc)
		CASE_PUSH(0xD5, cpu->de)
		CASE_PUSH(0xE5, cpu->hl)
		CASE_PUSH(0xF5, cpu->af)
		CASE_POP(0xC1, cpu->bc)
		CASE_POP(0xD1, cpu->de)
		CASE_POP(0xE1, cpu->hl)
		CASE_POP(0xF1, cpu->af)
		case 0xE9:
			TAKES(1)
			ENDS(1, 1, 0xE9)
			JUMPS(cpu->hl)
			break;
		CASE_ROTATE_A(0x07)
		CASE_ROTATE_A(0x0F)
		CASE_ROTATE_A(0x17)
		CASE_ROTATE_A(0x1F)
		case 0x2F:
			TAKES(1)
			cpu->a ^= 0xFF;
			cpu->f.packed |= HALF | SUBTRACT;
			ENDS(1, 1, 0x2F)
			break;
		case 0x37:
			TAKES(1)
			set_flags(cpu, ZERO, CARRY);
			ENDS(1, 1, 0x37)
			break;
		case 0x3F:
			TAKES(1)
			set_flags(cpu, ZERO, ~cpu->f.packed & CARRY);
			ENDS(1, 1, 0x3F)
			break;
		case 0xCB: {
			uint8_t operation = BYTE(1);
			bool tests = (operation & 0xC0) == 0x40;
			uint8_t* place = named_register(cpu, operation);
			int cycles = 2;
			if (!place) {
				cycles = tests ? 3 : 4;
				place = find_ram(gb, cpu->hl);
				if (!place) {
					goto out;
				}
			}
			TAKES(cycles)
			if (tests) {
				test_bit(cpu, operation, *place);
			} else {
				PUT(place, change(cpu, operation, *place))
			}
			ENDS(cycles, 2, operation)
			if (cycles > 2) {
				LEAVES(cpu->hl, *place)
			}
			break;
		}
		default:
			goto out;
		}
	}
out:
	if (left != all) {
		cpu->pc = pc;
		cpu->cycles += (all - left) * 4 * cpu->tMultiplier;
		gb->memory.cartBus = cart_bus;
		gb->memory.cartBusPc = cart_pc;
	}
}

static void run_frame(struct GB* gb) {
	struct SM83Core* cpu = gb->cpu;
	uint32_t frame = gb->video.frameCounter;
	fw_gb_events_begin_frame(gb);
	do {
		fw_gb_events_update(gb);
		if (cpu->cycles >= cpu->nextEvent) {
			cpu->irqh.processEvents(cpu);
			continue;
		}
		if (cpu->executionState == SM83_CORE_FETCH && !cpu->irqPending && !cpu->halted && is_plain(gb)) {
			run_instructions(gb, cpu);
			if (cpu->cycles >= cpu->nextEvent) {
				continue;
			}
		}
		/* libmgba runs the next instruction, up to an event. */
		do {
			SM83Tick(cpu);
		} while (cpu->executionState != SM83_CORE_FETCH && cpu->cycles < cpu->nextEvent);
	} while (gb->video.frameCounter == frame || cpu->executionState != SM83_CORE_FETCH);
	fw_gb_events_end_frame(gb);
}

void fw_run_processor(struct fw_core* self) {
	struct mCore* core = self->core;
	/* Scripts and debuggers can read the state within an instruction. */
	if (self->steps_all || self->scripts || core->debugger || core->platform(core) != mPLATFORM_GB) {
		core->runFrame(core);
	} else {
		run_frame(core->board);
	}
}

#else

void fw_run_processor(struct fw_core* self) {
	self->core->runFrame(self->core);
}

#endif

void fw_step_all_cycles(struct fw_core* self, bool all) {
	self->steps_all = all;
}
