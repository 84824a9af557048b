/* Runs a Game Boy's processor in whole instructions.
 *
 * libmgba runs it in steps of four clocks, each with two calls through function pointers, because an event can fall
 * into any step. Most instructions end before the next event and do not depend on the exact time. This file runs
 * such an instruction in one step, with the same results as libmgba: the registers, the values on the buses, and the
 * time. libmgba runs all other instructions. If a loop only waits for the next event, its repetitions are skipped.
 *
 * sm83_arithmetic.h has the arithmetic, and sm83_cases.h the macros for the table of instructions. */
#include "internal.h"

/* Only for versions before mGBA 0.11: see FEATURES in build.rs. */
#ifndef FW_HAVE_AUDIO_BUFFER

#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gb/io.h>
#include <mgba/internal/sm83/sm83.h>

#include "sm83_arithmetic.h"
#include "sm83_cases.h"

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
	/* Games wait for changes of these registers. They do not change within run_instructions, which handles no events
	 * and does not write to them. */
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
	int left; /* the cycles until the next event */
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

/* Runs instructions from the ROM, up to one that this function does not support, or until the next event is near. */
static void run_instructions(struct GB* gb, struct SM83Core* cpu) {
	uint16_t pc = cpu->pc;
	const size_t rom_size = gb->memory.romSize;
	/* `all` and `left` count cycles of four clocks. If an event is due in the first three clocks of a cycle, libmgba
	 * must run this cycle. */
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
		/* libmgba runs the next instruction. If an event is due within it, libmgba runs only the part before the event. */
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
