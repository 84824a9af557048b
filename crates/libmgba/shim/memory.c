/* The bus, the memory domains and the registers. */
#include "internal.h"

uint32_t fw_read8(struct fw_core* self, uint32_t address) {
	return self->core->busRead8(self->core, address);
}

uint32_t fw_read16(struct fw_core* self, uint32_t address) {
	return self->core->busRead16(self->core, address);
}

uint32_t fw_read32(struct fw_core* self, uint32_t address) {
	return self->core->busRead32(self->core, address);
}

void fw_write8(struct fw_core* self, uint32_t address, uint8_t value) {
	self->core->busWrite8(self->core, address, value);
}

void fw_write16(struct fw_core* self, uint32_t address, uint16_t value) {
	self->core->busWrite16(self->core, address, value);
}

void fw_write32(struct fw_core* self, uint32_t address, uint32_t value) {
	self->core->busWrite32(self->core, address, value);
}

void fw_read_range(struct fw_core* self, uint32_t address, uint8_t* out, size_t len) {
	struct mCore* core = self->core;
	for (size_t i = 0; i < len; ++i) {
		out[i] = core->busRead8(core, address + (uint32_t) i);
	}
}

void fw_write_range(struct fw_core* self, uint32_t address, const uint8_t* data, size_t len) {
	struct mCore* core = self->core;
	for (size_t i = 0; i < len; ++i) {
		core->busWrite8(core, address + (uint32_t) i, data[i]);
	}
}

bool fw_domain(const struct fw_core* self, size_t index, struct fw_block* out, struct fw_block_names* names) {
	const struct mCoreMemoryBlock* blocks;
	size_t count = self->core->listMemoryBlocks(self->core, &blocks);
	size_t seen = 0;
	for (size_t i = 0; i < count; ++i) {
		/* The whole address space is a block too, but not one of emu.memory. */
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
			.readable = blocks[i].flags & mCORE_MEMORY_READ,
			/* WORM blocks (cartridges) take a write as a patch. */
			.writable = blocks[i].flags & (mCORE_MEMORY_WRITE | mCORE_MEMORY_WORM),
		};
		*names = (struct fw_block_names) {
			.internal_name = blocks[i].internalName,
			.short_name = blocks[i].shortName,
			.long_name = blocks[i].longName,
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

/* Where an offset into a domain lies, by the rules of Lua's memory domains: an
 * offset past the window of the domain goes on in its next bank, and platforms
 * without banks wrap around. */
static struct place locate(const struct fw_block* block, uint32_t offset) {
	uint32_t window = block->end - block->start;
	uint32_t skip = 0;
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

enum { GB_VRAM = 0x8000, GB_CART_RAM = 0xA000 };

static bool is_gb(const struct mCore* core, const struct fw_block* block, uint32_t start) {
	return core->platform(core) == mPLATFORM_GB && block->start == start;
}

/* libmgba reaches a Game Boy's cartridge RAM in windows of 8 KiB, however small
 * the RAM is, so what lies past its end must not get that far. Past the window
 * itself the access goes on in other memory, harmlessly. */
static bool is_past_cart_ram(struct mCore* core, const struct fw_block* block, uint32_t offset, unsigned width) {
	if (!is_gb(core, block, GB_CART_RAM)) {
		return false;
	}
	size_t size = 0;
	void* memory = core->getMemoryBlock(core, block->id, &size);
	const uint32_t window = 0x2000;
	uint32_t left = window - offset % window;
	return memory && size % window && (uint64_t) offset + (width < left ? width : left) > size;
}

/* libmgba adds the bank to the bank now mapped when it writes a Game Boy's video
 * RAM, which can end outside of it. */
static void write_gb_vram(struct mCore* core, const struct fw_block* block, uint32_t offset, unsigned width, uint32_t value) {
	size_t size = 0;
	uint8_t* memory = core->getMemoryBlock(core, block->id, &size);
	for (unsigned i = 0; memory && i < width; ++i) {
		uint64_t at = (uint64_t) offset + i;
		if (at < size) {
			memory[at] = value >> (8 * i);
		}
	}
}

uint32_t fw_domain_read(struct fw_core* self, const struct fw_block* block, uint32_t offset, unsigned width) {
	struct mCore* core = self->core;
	if (is_past_cart_ram(core, block, offset, width)) {
		return width == 4 ? 0xFFFFFFFF : (1u << (8 * width)) - 1;
	}
	struct place place = locate(block, offset);
	if (!place.valid) {
		return 0;
	}
	switch (width) {
	case 1:
		return core->rawRead8(core, place.address, place.segment);
	case 2:
		return core->rawRead16(core, place.address, place.segment);
	default:
		return core->rawRead32(core, place.address, place.segment);
	}
}

void fw_domain_write(struct fw_core* self, const struct fw_block* block, uint32_t offset, unsigned width, uint32_t value) {
	struct mCore* core = self->core;
	if (is_gb(core, block, GB_VRAM)) {
		write_gb_vram(core, block, offset, width, value);
		return;
	}
	if (is_past_cart_ram(core, block, offset, width)) {
		return;
	}
	struct place place = locate(block, offset);
	if (!place.valid) {
		return;
	}
	switch (width) {
	case 1:
		core->rawWrite8(core, place.address, place.segment, value);
		break;
	case 2:
		core->rawWrite16(core, place.address, place.segment, value);
		break;
	default:
		core->rawWrite32(core, place.address, place.segment, value);
		break;
	}
}

void fw_domain_read_range(struct fw_core* self, const struct fw_block* block, uint32_t offset, uint8_t* out, size_t len) {
	for (size_t i = 0; i < len; ++i) {
		out[i] = fw_domain_read(self, block, offset + (uint32_t) i, 1);
	}
}

const uint8_t* fw_domain_memory(const struct fw_core* self, const struct fw_block* block, size_t* size) {
	*size = 0;
	return self->core->getMemoryBlock(self->core, block->id, size);
}

const char* fw_register_name(const struct fw_core* self, size_t index) {
	const struct mCoreRegisterInfo* registers;
	size_t count = self->core->listRegisters(self->core, &registers);
	return index < count ? registers[index].name : NULL;
}

bool fw_read_register(const struct fw_core* self, const char* name, int32_t* out) {
	/* Narrow registers fill only their own bytes of it. */
	*out = 0;
	return self->core->readRegister(self->core, name, out);
}

/* Between ARM and Thumb, libmgba keeps the instructions that it has fetched
 * already: an ARM one, run as Thumb, is looked up far outside of its table. A
 * jump to the next instruction fetches anew. */
static bool write_cpsr(struct mCore* core, int32_t value) {
	enum { THUMB = 0x20 };
	uint32_t pc = 0;
	uint32_t before = 0;
	uint32_t after = 0;
	/* The register is one instruction ahead of the one that is next. */
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
