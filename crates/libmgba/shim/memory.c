/* The bus, the memory domains and the registers.
 *
 * At every address, aligned or not, a number consists of the bytes from there on, least significant first. An aligned
 * number is read or written in one access of its width, as hardware registers require. Any other number is read or
 * written byte by byte, and so is every number in the GBA's save memory. */
#include "internal.h"

#include <mgba/internal/defines.h>
#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gba/gba.h>

/* The parts of the GBA's bus that do not accept accesses of every width, as the highest byte of their addresses. */
enum { GBA_PALETTE = 5, GBA_VRAM = 6, GBA_OAM = 7, GBA_SAVE = 0xE };

static bool is_gba(const struct mCore* core) {
	return core->platform(core) == mPLATFORM_GBA;
}

/* Whether libmgba's own access of this width uses exactly these bytes. The GBA
 * rotates numbers at unaligned addresses, and repeats one byte on the bus of the save
 * memory. On a Game Boy, libmgba reads and writes numbers byte by byte in any case. */
static bool is_whole(const struct mCore* core, uint32_t address, unsigned width) {
	return !is_gba(core) || (!(address & (width - 1)) && address >> 24 < GBA_SAVE);
}

static uint32_t bus_read(struct mCore* core, uint32_t address, unsigned width) {
	if (width == 1) {
		return core->busRead8(core, address);
	}
	if (is_whole(core, address, width)) {
		return width == 2 ? core->busRead16(core, address) : core->busRead32(core, address);
	}
	uint32_t value = 0;
	for (unsigned i = 0; i < width; ++i) {
		value |= (uint32_t) core->busRead8(core, address + i) << (8 * i);
	}
	return value;
}

/* The GBA's video memory does not accept single bytes: the hardware doubles or
 * drops them. So this function writes a byte there together with its neighbour. */
static void bus_write_byte(struct mCore* core, uint32_t address, uint8_t value) {
	uint32_t region = address >> 24;
	if (!is_gba(core) || region < GBA_PALETTE || region > GBA_OAM) {
		core->busWrite8(core, address, value);
		return;
	}
	unsigned shift = 8 * (address & 1);
	uint32_t pair = core->busRead16(core, address & ~1u);
	core->busWrite16(core, address & ~1u, (pair & ~(0xFFu << shift)) | (uint32_t) value << shift);
}

static void bus_write(struct mCore* core, uint32_t address, unsigned width, uint32_t value) {
	if (width > 1 && is_whole(core, address, width)) {
		if (width == 2) {
			core->busWrite16(core, address, value);
		} else {
			core->busWrite32(core, address, value);
		}
		return;
	}
	for (unsigned i = 0; i < width; ++i) {
		bus_write_byte(core, address + i, value >> (8 * i));
	}
}

uint32_t fw_read8(struct fw_core* self, uint32_t address) {
	return bus_read(self->core, address, 1);
}

uint32_t fw_read16(struct fw_core* self, uint32_t address) {
	return bus_read(self->core, address, 2);
}

uint32_t fw_read32(struct fw_core* self, uint32_t address) {
	return bus_read(self->core, address, 4);
}

void fw_write8(struct fw_core* self, uint32_t address, uint8_t value) {
	bus_write(self->core, address, 1, value);
}

void fw_write16(struct fw_core* self, uint32_t address, uint16_t value) {
	bus_write(self->core, address, 2, value);
}

void fw_write32(struct fw_core* self, uint32_t address, uint32_t value) {
	bus_write(self->core, address, 4, value);
}

void fw_read_range(struct fw_core* self, uint32_t address, uint8_t* out, size_t len) {
	struct mCore* core = self->core;
	for (size_t i = 0; i < len; ++i) {
		out[i] = core->busRead8(core, address + (uint32_t) i);
	}
}

void fw_write_range(struct fw_core* self, uint32_t address, const uint8_t* data, size_t len) {
	for (size_t i = 0; i < len; ++i) {
		bus_write_byte(self->core, address + (uint32_t) i, data[i]);
	}
}

enum { GB_ROM = 0, GB_VRAM = 0x8000, GB_CART_RAM = 0xA000, GB_WORK_RAM = 0xC000, VRAM_BANK = 0x2000 };

/* Whether the console is a Game Boy and the domain begins at `start`. */
static bool is_gb_block(const struct mCore* core, const struct fw_block* block, uint32_t start) {
	return !is_gba(core) && block->start == start;
}

static bool is_save(const struct mCore* core, size_t id, uint32_t start) {
	return is_gba(core) ? id == REGION_CART_SRAM || id == REGION_CART_SRAM_MIRROR : start == GB_CART_RAM;
}

/* Whether a domain can be written. libmgba writes to hardware registers only through the bus. */
static bool is_writable(const struct mCore* core, const struct mCoreMemoryBlock* block) {
	uint32_t registers = is_gba(core) ? BASE_IO : GB_BASE_IO;
	/* In WORM blocks (cartridges), a write is a patch. */
	bool flagged = block->flags & (mCORE_MEMORY_WRITE | mCORE_MEMORY_WORM);
	return is_save(core, block->id, block->start) || (flagged && block->start != registers);
}

bool fw_domain(const struct fw_core* self, size_t index, struct fw_block* out, struct fw_block_names* names) {
	const struct mCoreMemoryBlock* blocks;
	size_t count = self->core->listMemoryBlocks(self->core, &blocks);
	size_t seen = 0;
	for (size_t i = 0; i < count; ++i) {
		/* The whole address space is also a block, but not a domain in emu.memory. */
		if (blocks[i].flags == mCORE_MEMORY_VIRTUAL) {
			continue;
		}
		if (seen++ < index) {
			continue;
		}
		*out = (struct fw_block) {
			.id = blocks[i].id,
			.start = blocks[i].start,
			.end = blocks[i].end,
			.size = blocks[i].size,
			.segment_start = blocks[i].segmentStart,
			.writable = is_writable(self->core, &blocks[i]),
		};
		if (is_gb_block(self->core, out, GB_VRAM)) {
			/* libmgba includes the cartridge's RAM, which follows the video RAM, in each bank. */
			out->end = GB_VRAM + VRAM_BANK;
			out->size /= 2;
		} else if (is_gb_block(self->core, out, GB_ROM)) {
			/* Before 0.10.2, libmgba returns the size of the largest possible cartridge. */
			out->size = self->core->romSize(self->core);
		}
		*names = (struct fw_block_names) {
			.internal_name = blocks[i].internalName,
			.short_name = blocks[i].shortName,
		};
		return true;
	}
	return false;
}

struct place {
	uint32_t address;
	int segment;
	bool valid;
};

/* The place of an offset in a domain, according to the rules of memory domains in
 * Lua. The addresses of a domain are a window onto one of its banks. An offset past the
 * window is in the next bank; on platforms without banks, it wraps around. */
static struct place locate(const struct fw_block* block, uint32_t offset) {
	uint32_t window = block->end - block->start;
	uint32_t skip = 0;
	/* The addresses before segment_start always show bank 0. The other banks are shown from there on. */
	if (block->segment_start) {
		skip = block->segment_start - block->start;
		window -= skip;
	}
	if (!window) {
		return (struct place) { .valid = false };
	}
	struct place place = {
		.address = block->start + offset % window,
		.segment = (int) (offset / window),
		.valid = true,
	};
	if (place.segment) {
		place.address += skip;
	}
	return place;
}

/* The bytes of a domain in libmgba's own memory; NULL if there are none. */
struct plain {
	uint8_t* bytes;
	size_t size;
};

/* Finds the bytes of a domain for which libmgba's own access functions are not enough. These functions can write to
 * video RAM at a place outside of the bank, read cartridge RAM only while the game has it unlocked, reach only one bank
 * of flash, and repeat the first bank of the work RAM if the console has only two. Returns false for all other domains. */
static bool find_plain(struct mCore* core, const struct fw_block* block, struct plain* out) {
	if (is_gb_block(core, block, GB_VRAM)) {
		struct GB* gb = core->board;
		*out = (struct plain) { gb->video.vram, block->size };
		return true;
	}
	if (is_gb_block(core, block, GB_WORK_RAM)) {
		struct GB* gb = core->board;
		*out = (struct plain) { gb->memory.wram, block->size };
		return true;
	}
	if (!is_save(core, block->id, block->start)) {
		return false;
	}
	if (is_gba(core)) {
		struct GBASavedata* save = &((struct GBA*) core->board)->memory.savedata;
		*out = (struct plain) { save->data, save->data ? GBASavedataSize(save) : 0 };
	} else {
		struct GB* gb = core->board;
		*out = (struct plain) { gb->memory.sram, gb->memory.sram ? gb->sramSize : 0 };
	}
	return true;
}

/* Marks the battery save as changed, so that libmgba saves it. */
static void mark_save_changed(struct mCore* core) {
	if (is_gba(core)) {
		((struct GBA*) core->board)->memory.savedata.dirty |= mSAVEDATA_DIRT_NEW;
	} else {
		((struct GB*) core->board)->sramDirty |= mSAVEDATA_DIRT_NEW;
	}
}

/* Whether libmgba can read or write a number in a domain in one access. Stores the number's place in `out`. */
static bool locate_whole(struct mCore* core, const struct fw_block* block, uint32_t offset, unsigned width, struct place* out) {
	struct plain plain;
	*out = locate(block, offset);
	return width > 1 && is_gba(core) && is_whole(core, offset, width) && out->valid && !find_plain(core, block, &plain);
}

static uint32_t domain_read_byte(struct mCore* core, const struct fw_block* block, uint32_t offset) {
	struct plain plain;
	if (find_plain(core, block, &plain)) {
		return offset < plain.size ? plain.bytes[offset] : 0xFF;
	}
	struct place place = locate(block, offset);
	return place.valid ? core->rawRead8(core, place.address, place.segment) : 0;
}

uint32_t fw_domain_read(struct fw_core* self, const struct fw_block* block, uint32_t offset, unsigned width) {
	struct mCore* core = self->core;
	struct place place;
	if (locate_whole(core, block, offset, width, &place)) {
		return width == 2 ? core->rawRead16(core, place.address, 0) : core->rawRead32(core, place.address, 0);
	}
	uint32_t value = 0;
	for (unsigned i = 0; i < width; ++i) {
		value |= domain_read_byte(core, block, offset + i) << (8 * i);
	}
	return value;
}

/* Whether a place must be written through the bus: the GBA's video memory. Other
 * writes of libmgba do not accept single bytes there, and do not update the picture. */
static bool is_written_by_bus(const struct mCore* core, struct place place) {
	uint32_t region = place.address >> 24;
	return is_gba(core) && place.valid && region >= GBA_PALETTE && region <= GBA_OAM;
}

static void domain_write_byte(struct mCore* core, const struct fw_block* block, uint32_t offset, uint8_t value) {
	struct plain plain;
	if (find_plain(core, block, &plain)) {
		if (offset < plain.size) {
			plain.bytes[offset] = value;
			if (is_save(core, block->id, block->start)) {
				mark_save_changed(core);
			}
		}
		return;
	}
	struct place place = locate(block, offset);
	if (is_written_by_bus(core, place)) {
		bus_write_byte(core, place.address, value);
	} else if (place.valid) {
		core->rawWrite8(core, place.address, place.segment, value);
	}
}

void fw_domain_write(struct fw_core* self, const struct fw_block* block, uint32_t offset, unsigned width, uint32_t value) {
	struct mCore* core = self->core;
	struct place place;
	if (!locate_whole(core, block, offset, width, &place)) {
		for (unsigned i = 0; i < width; ++i) {
			domain_write_byte(core, block, offset + i, value >> (8 * i));
		}
	} else if (is_written_by_bus(core, place)) {
		bus_write(core, place.address, width, value);
	} else if (width == 2) {
		core->rawWrite16(core, place.address, 0, value);
	} else {
		core->rawWrite32(core, place.address, 0, value);
	}
}

void fw_domain_read_range(struct fw_core* self, const struct fw_block* block, uint32_t offset, uint8_t* out, size_t len) {
	for (size_t i = 0; i < len; ++i) {
		out[i] = domain_read_byte(self->core, block, offset + (uint32_t) i);
	}
}

const uint8_t* fw_domain_memory(const struct fw_core* self, const struct fw_block* block, size_t* size) {
	/* getMemoryBlock is wrong for two kinds of memory, which find_plain handles. For 128 KiB of flash, it returns a
	 * pointer to the selected bank with the size of both banks. For the video RAM of a Game Boy Color, it returns only
	 * the first bank. */
	struct plain plain = { NULL, 0 };
	if (!find_plain(self->core, block, &plain)) {
		plain.bytes = self->core->getMemoryBlock(self->core, block->id, &plain.size);
	}
	*size = plain.size;
	return plain.bytes;
}

const char* fw_register_name(const struct fw_core* self, size_t index) {
	const struct mCoreRegisterInfo* registers;
	size_t count = self->core->listRegisters(self->core, &registers);
	return index < count ? registers[index].name : NULL;
}

bool fw_read_register(const struct fw_core* self, const char* name, int32_t* out) {
	/* libmgba sets only as many bytes of `out` as the register has. */
	*out = 0;
	return self->core->readRegister(self->core, name, out);
}

/* When the processor changes between ARM and Thumb, libmgba keeps the instructions
 * that it has already fetched. If it runs an ARM instruction as Thumb, it reads far
 * outside of its table. A jump to the next instruction makes it fetch again. */
static bool write_cpsr(struct mCore* core, int32_t value) {
	enum { THUMB = 0x20 };
	uint32_t pc = 0;
	uint32_t before = 0;
	uint32_t after = 0;
	/* pc is one instruction ahead of the next instruction. */
	core->readRegister(core, "pc", &pc);
	core->readRegister(core, "cpsr", &before);
	bool written = core->writeRegister(core, "cpsr", &value);
	core->readRegister(core, "cpsr", &after);
	if ((before ^ after) & THUMB) {
		pc -= before & THUMB ? 2 : 4;
		core->writeRegister(core, "pc", &pc);
	}
	return written;
}

bool fw_write_register(struct fw_core* self, const char* name, int32_t value) {
	struct mCore* core = self->core;
	if (core->platform(core) == mPLATFORM_GBA && !strcmp(name, "cpsr")) {
		return write_cpsr(core, value);
	}
	return core->writeRegister(core, name, &value);
}
