/* Cheats. libmgba reads the codes, and applies those for RAM at the end of each frame. Codes that change the ROM are
 * applied here, because libmgba 0.10 applies Game Genie codes to the wrong bank: in the first frame, it looks for the
 * bank that has the expected byte, but in each later frame, it uses the bank that is mapped at that moment. */
#include "internal.h"

#include <mgba-util/string.h>
#include <mgba/core/cheats.h>
#include <mgba/internal/gba/cheats.h>

/* A place in the ROM that a cheat changes. */
struct rom_patch {
	uint32_t address;
	int segment; /* the bank of a Game Boy's ROM, or -1 */
	int width;
	uint32_t value;
	uint32_t original; /* while the patch is applied: the value that it replaced */
};

struct fw_cheat {
	struct mCheatSet* set;
	struct rom_patch* patches;
	size_t patch_count;
	bool is_applied; /* whether the patches are in the ROM */
};

static uint32_t read_rom(struct mCore* core, const struct rom_patch* patch) {
	switch (patch->width) {
	case 1:
		return core->rawRead8(core, patch->address, patch->segment) & 0xFF;
	case 2:
		return core->rawRead16(core, patch->address, patch->segment) & 0xFFFF;
	default:
		return core->rawRead32(core, patch->address, patch->segment);
	}
}

static void write_rom(struct mCore* core, const struct rom_patch* patch, uint32_t value) {
	switch (patch->width) {
	case 1:
		core->rawWrite8(core, patch->address, patch->segment, value);
		break;
	case 2:
		core->rawWrite16(core, patch->address, patch->segment, value);
		break;
	default:
		core->rawWrite32(core, patch->address, patch->segment, value);
		break;
	}
}

/* Does nothing. Each set in the list has this function as its `copyProperties`, as a mark that the set belongs to this
 * file. (libmgba calls `copyProperties` only for a new set, before it adds the set.) The address of a set is not enough
 * to recognise it: a set from a loaded state can have the address of a freed set, but it does not have this mark. */
static void mark(struct mCheatSet* set, struct mCheatSet* from) {
	UNUSED(set);
	UNUSED(from);
}

/* Whether libmgba has exactly the sets of the list. Scripts can load a game, which drops all sets, or a state with
 * cheats, which replaces them. */
static bool has_our_sets(struct fw_core* self) {
	const struct fw_cheats* list = &self->cheats;
	struct mCheatDevice* device = self->core->cheatDevice(self->core);
	if (mCheatSetsSize(&device->cheats) != list->count) {
		return false;
	}
	for (size_t i = 0; i < list->count; ++i) {
		const struct mCheatSet* set = *mCheatSetsGetPointer(&device->cheats, i);
		if (set != list->all[i].set || set->copyProperties != mark) {
			return false;
		}
	}
	return true;
}

/* Restores the original bytes of the ROM. Two cheats may change the same byte, so this goes from the last to the
 * first. */
static void restore_rom(struct fw_core* self) {
	for (size_t i = self->cheats.count; i--;) {
		struct fw_cheat* cheat = &self->cheats.all[i];
		for (size_t p = cheat->is_applied ? cheat->patch_count : 0; p--;) {
			write_rom(self->core, &cheat->patches[p], cheat->patches[p].original);
		}
		cheat->is_applied = false;
	}
}

static void change_rom(struct fw_core* self) {
	for (size_t i = 0; i < self->cheats.count; ++i) {
		struct fw_cheat* cheat = &self->cheats.all[i];
		for (size_t p = 0; cheat->set->enabled && p < cheat->patch_count; ++p) {
			cheat->patches[p].original = read_rom(self->core, &cheat->patches[p]);
			write_rom(self->core, &cheat->patches[p], cheat->patches[p].value);
		}
		cheat->is_applied = cheat->set->enabled;
	}
}

static bool add_patch(struct fw_cheat* cheat, struct rom_patch patch) {
	struct rom_patch* patches = realloc(cheat->patches, (cheat->patch_count + 1) * sizeof(patch));
	if (!patches) {
		return false;
	}
	cheat->patches = patches;
	patches[cheat->patch_count++] = patch;
	return true;
}

/* Adds the patches of a Game Genie code for a Game Boy: one in each bank that can be mapped at the code's address and
 * has the byte that the code expects there, if it expects one. For addresses from 0x4000 on, bank 0 is left out: an
 * MBC5 can map it there, but the game runs the program in bank 0 at addresses below 0x4000. */
static int find_in_banks(struct fw_core* self, struct fw_cheat* cheat, const struct mCheatPatch* from,
                         struct fw_cheat_problem* problem) {
	const uint32_t bank_size = 0x4000;
	struct mCore* core = self->core;
	struct rom_patch patch = { from->address, 0, from->width, from->value & 0xFF, 0 };
	if (patch.address >= 2 * bank_size) {
		problem->value = patch.address;
		return FW_CHEAT_OUTSIDE;
	}
	int end = 1;
	if (patch.address >= bank_size) {
		patch.segment = 1;
		end = (core->romSize(core) + bank_size - 1) / bank_size;
	}
	size_t before = cheat->patch_count;
	for (; patch.segment < end; ++patch.segment) {
		bool fits = !from->check || read_rom(core, &patch) == (from->checkValue & 0xFF);
		if (fits && !add_patch(cheat, patch)) {
			return FW_NO_MEMORY;
		}
	}
	problem->value = from->checkValue & 0xFF;
	return cheat->patch_count > before ? FW_OK : FW_CHEAT_OTHER_GAME;
}

/* Moves patches from libmgba's set into `cheat`: those that a line of the cheat has added to the set. */
static int take_patches(struct fw_core* self, struct fw_cheat* cheat, struct fw_cheat_problem* problem) {
	struct mCore* core = self->core;
	struct mCheatPatchList* list = &cheat->set->romPatches;
	for (size_t i = 0; i < mCheatPatchListSize(list); ++i) {
		const struct mCheatPatch* from = mCheatPatchListGetPointer(list, i);
		int status = FW_OK;
		if (core->platform(core) == mPLATFORM_GB) {
			status = find_in_banks(self, cheat, from, problem);
		} else {
			struct rom_patch patch = { from->address, -1, from->width, from->value, 0 };
			if ((patch.address & 0x01FFFFFF) + patch.width > core->romSize(core)) {
				problem->value = patch.address;
				status = FW_CHEAT_OUTSIDE;
			} else if (!add_patch(cheat, patch)) {
				status = FW_NO_MEMORY;
			}
		}
		if (status != FW_OK) {
			return status;
		}
	}
	mCheatPatchListClear(list);
	return FW_OK;
}

/* Whether the console has writable memory at an address. If a code was encrypted with another key, or is for another
 * device, its decoded address is arbitrary. */
static bool is_memory(struct mCore* core, uint32_t address) {
	if (core->platform(core) == mPLATFORM_GB) {
		return address >= 0x8000 && address <= 0xFFFF;
	}
	switch (address >> 24) {
	case 0x2: case 0x3: case 0x5: case 0x7: case 0xE: case 0xF:
		return true;
	case 0x4:
		return (address & 0xFFFFFF) < 0x400;
	case 0x6:
		return (address & 0xFFFFFF) < 0x20000;
	default:
		return false;
	}
}

static bool is_assignment(const struct mCheat* cheat) {
	switch (cheat->type) {
	case CHEAT_ASSIGN: case CHEAT_ASSIGN_INDIRECT: case CHEAT_AND: case CHEAT_ADD: case CHEAT_OR:
		return true;
	default:
		return false;
	}
}

/* Checks the codes that a line has added to the set, from index `from` on. */
static int check_codes(struct fw_core* self, struct mCheatSet* set, size_t from, struct fw_cheat_problem* problem) {
	struct mCore* core = self->core;
	for (size_t i = from; i < mCheatListSize(&set->list); ++i) {
		const struct mCheat* code = mCheatListGetPointer(&set->list, i);
		if (is_assignment(code) && (!is_memory(core, code->address) || code->width > 4)) {
			problem->value = code->address;
			return FW_CHEAT_ADDRESS;
		}
	}
	if (core->platform(core) == mPLATFORM_GBA) {
		const struct GBACheatHook* hook = ((struct GBACheatSet*) set)->hook;
		if (hook && (hook->address & 0x01FFFFFF) + 2 > core->romSize(core)) {
			problem->value = hook->address;
			return FW_CHEAT_OUTSIDE;
		}
	}
	return FW_OK;
}

/* Whether the last code of the set needs another line. */
static bool is_incomplete(struct fw_core* self, struct mCheatSet* set) {
	if (self->core->platform(self->core) != mPLATFORM_GBA) {
		return false;
	}
	const struct GBACheatSet* gba = (struct GBACheatSet*) set;
	return gba->incompleteCheat != COMPLETE || gba->incompletePatch || gba->currentBlock != COMPLETE;
}

static int read_lines(struct fw_core* self, struct fw_cheat* cheat, const struct fw_cheat_codes* codes,
                      struct fw_cheat_problem* problem) {
	struct mCheatSet* set = cheat->set;
	for (size_t i = 0; i < codes->count; ++i) {
		problem->line = i;
		size_t before = mCheatListSize(&set->list);
		if (!mCheatAddLine(set, codes->lines[i], 0)) {
			return FW_CHEAT_LINE;
		}
		int status = check_codes(self, set, before, problem);
		/* If a code has two lines, the second line contains the value of the patch. */
		bool waits = self->core->platform(self->core) == mPLATFORM_GBA && ((struct GBACheatSet*) set)->incompletePatch;
		if (status == FW_OK && !waits) {
			status = take_patches(self, cheat, problem);
		}
		if (status != FW_OK) {
			return status;
		}
	}
	return is_incomplete(self, set) ? FW_CHEAT_INCOMPLETE : FW_OK;
}

/* If a cheat is on, applies its codes once, as at the end of a frame. Does nothing if the cheat has a master code: then
 * libmgba applies the codes when the game reaches the master code's address. */
static void apply(struct fw_core* self, struct mCheatSet* set) {
	struct mCore* core = self->core;
	bool hooked = core->platform(core) == mPLATFORM_GBA && ((struct GBACheatSet*) set)->hook;
	if (set->enabled && !hooked) {
		mCheatRefresh(core->cheatDevice(core), set);
	}
}

int fw_cheat_add(struct fw_core* self, const struct fw_cheat_codes* codes, struct fw_cheat_problem* problem) {
	struct mCheatDevice* device = self->core->cheatDevice(self->core);
	struct fw_cheats* list = &self->cheats;
	if (!fw_cheats_count(self)) {
		list->game = fw_crc32(self);
	}
	struct fw_cheat* all = realloc(list->all, (list->count + 1) * sizeof(*all));
	if (!all) {
		return FW_NO_MEMORY;
	}
	list->all = all;
	struct fw_cheat cheat = { device->createSet(device, codes->name), NULL, 0, false };
	cheat.set->enabled = false;
	/* A master code and the keys of CodeBreaker codes also apply to the cheats after them, as in mGBA's window. Only a
	 * cheat from a cheat file takes over the encryption of GameShark and Action Replay codes from the cheat before it.
	 * In other cheats without a directive, the encryption is detected again. */
	if (list->count) {
		cheat.set->copyProperties(cheat.set, list->all[list->count - 1].set);
	}
	if (!codes->directive && !codes->keeps_encryption && self->core->platform(self->core) == mPLATFORM_GBA) {
		((struct GBACheatSet*) cheat.set)->gsaVersion = 0;
	}
	if (codes->directive) {
		struct StringList directives;
		StringListInit(&directives, 1);
		*StringListAppend(&directives) = (char*) codes->directive;
		cheat.set->parseDirectives(cheat.set, &directives);
		StringListDeinit(&directives);
	}
	/* Codes are checked against the ROM as it is without cheats. */
	restore_rom(self);
	int status = read_lines(self, &cheat, codes, problem);
	if (status == FW_OK) {
		cheat.set->copyProperties = mark;
		mCheatAddSet(device, cheat.set);
		cheat.set->enabled = codes->enabled;
		list->all[list->count++] = cheat;
	} else {
		mCheatSetDeinit(cheat.set);
		free(cheat.patches);
	}
	change_rom(self);
	if (status == FW_OK) {
		apply(self, cheat.set);
	}
	return status;
}

void fw_cheat_enable(struct fw_core* self, size_t index, bool enabled) {
	if (index >= fw_cheats_count(self)) {
		return;
	}
	struct mCheatSet* set = self->cheats.all[index].set;
	restore_rom(self);
	set->enabled = enabled;
	change_rom(self);
	apply(self, set);
}

static void drop_set(struct fw_core* self, struct mCheatSet* set) {
	mCheatRemoveSet(self->core->cheatDevice(self->core), set);
	mCheatSetDeinit(set);
}

static void drop(struct fw_core* self, struct fw_cheat* cheat) {
	drop_set(self, cheat->set);
	free(cheat->patches);
}

void fw_cheat_remove(struct fw_core* self, size_t index) {
	if (index >= fw_cheats_count(self)) {
		return;
	}
	struct fw_cheats* list = &self->cheats;
	restore_rom(self);
	drop(self, &list->all[index]);
	--list->count;
	memmove(&list->all[index], &list->all[index + 1], (list->count - index) * sizeof(*list->all));
	change_rom(self);
}

size_t fw_cheats_count(struct fw_core* self) {
	struct fw_cheats* list = &self->cheats;
	size_t count = list->count;
	bool is_same_game = !count || list->game == fw_crc32(self);
	if (is_same_game && has_our_sets(self)) {
		return count;
	}
	/* If another game was loaded, the ROM that the cheats changed is gone, so it is not restored. */
	if (count && is_same_game) {
		restore_rom(self);
	}
	/* This also removes the sets of a state, which nobody could list or switch off. */
	struct mCheatDevice* device = self->core->cheatDevice(self->core);
	while (mCheatSetsSize(&device->cheats)) {
		drop_set(self, *mCheatSetsGetPointer(&device->cheats, 0));
	}
	while (list->count) {
		free(list->all[--list->count].patches);
	}
	return 0;
}

void fw_cheats_clear(struct fw_core* self) {
	if (!fw_cheats_count(self)) {
		return;
	}
	restore_rom(self);
	while (self->cheats.count) {
		drop(self, &self->cheats.all[--self->cheats.count]);
	}
}

void fw_cheats_free(struct fw_core* self) {
	/* libmgba frees the sets with the core. */
	for (size_t i = 0; i < self->cheats.count; ++i) {
		free(self->cheats.all[i].patches);
	}
	free(self->cheats.all);
}
