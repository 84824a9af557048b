/* The arithmetic of a Game Boy's processor, for sm83.c: what instructions compute, and which flags they set. */
#ifndef FW_SM83_ARITHMETIC_H
#define FW_SM83_ARITHMETIC_H

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

/* The operations with the prefix 0xCB that change a value: rotations and shifts, and bits that are cleared or set. */
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

#endif
