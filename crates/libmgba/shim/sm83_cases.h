/* Macros for the cases of run_instructions in sm83.c, one for each kind of instruction. They use the function's local
 * variables. */
#ifndef FW_SM83_CASES_H
#define FW_SM83_CASES_H

#include "sm83_arithmetic.h"

/* Leaves run_instructions if the instruction takes longer than the time until the next event. */
#define TAKES(CYCLES) \
	if (left < (CYCLES)) { \
		goto out; \
	}
/* Subtracts the time of an instruction of BYTES bytes, and continues after it. BUS is its last byte, which stays on the
 * processor's bus and on the cartridge's bus. */
#define ENDS(CYCLES, BYTES, BUS) \
	left -= (CYCLES); \
	cpu->bus = cart_bus = (BUS); \
	cart_pc = pc + (BYTES) - 1; \
	pc += (BYTES);
/* Used after ENDS by an instruction that accesses memory after its last byte was fetched. INDEX is the address of its
 * last access, which libmgba keeps in cpu->index, and BUS the byte that this access leaves on the processor's bus. */
#define LEAVES(INDEX, BUS) \
	cpu->index = (INDEX); \
	cpu->bus = (BUS);
/* Reads the byte at ADDRESS into `value`, for an instruction of BYTES bytes. Leaves run_instructions if the byte cannot
 * be read directly. */
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
/* Used after ENDS by instructions with LOADS. A byte of the ROM stays on the cartridge's bus. cart_pc is the value that
 * the processor's pc had during this access. */
#define LOADED \
	LEAVES(address, value) \
	if (in_rom) { \
		cart_bus = value; \
		cart_pc = read_at; \
	}
/* Finds the `place` of the byte at ADDRESS. Leaves run_instructions if the byte cannot be written directly. */
#define STORES(ADDRESS) \
	uint16_t address = (ADDRESS); \
	uint8_t* place = find_ram(gb, address); \
	if (!place) { \
		goto out; \
	}
/* Writes a byte, and records in `changed` whether this has changed memory. */
#define PUT(PLACE, VALUE) \
	{ \
		uint8_t* changing = (PLACE); \
		uint8_t byte_put = (VALUE); \
		changed |= *changing ^ byte_put; \
		*changing = byte_put; \
	}
#define BYTE(AT) region[(pc + (AT)) & (GB_SIZE_CART_BANK0 - 1)]
#define WORD (BYTE(1) | BYTE(2) << 8)

/* The cases of a kind of instruction, one for each register. Register number 6 is left out, because it stands for the
 * memory at HL. */
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
/* The cases of an operation for each source: the registers, the memory at HL (FIRST + 6), and the byte after the
 * instruction's code (FIRST + 0x46). */
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
/* libmgba keeps the low byte of the target in cpu->index. */
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

#endif
