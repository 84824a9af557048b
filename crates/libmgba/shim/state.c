/* Savestates and battery saves. */
#include "internal.h"

#include <mgba-util/memory.h>
#include <mgba/core/serialize.h>

int fw_state_save(struct fw_core* self, int flags, uint8_t** out, size_t* len) {
	struct VFile* vf = VFileMemChunk(NULL, 0);
	if (!vf) {
		return FW_NO_MEMORY;
	}
	if (!mCoreSaveStateNamed(self->core, vf, flags)) {
		vf->close(vf);
		return FW_STATE_SAVE_FAILED;
	}
	return fw_take_file(vf, out, len);
}

static enum mPlatform state_platform(const void* state) {
	/* Every state begins with its magic number plus a version in the low bits. */
	uint32_t magic;
	LOAD_32LE(magic, 0, state);
	switch (magic & ~0xFFFFu) {
	case 0x01000000:
		return mPLATFORM_GBA;
	case 0x00400000:
		return mPLATFORM_GB;
	default:
		return mPLATFORM_NONE;
	}
}

/* Takes the state proper, or puts the machine back as it was. */
static int try_state(struct mCore* core, const void* state) {
	enum mPlatform platform = state_platform(state);
	if (platform == mPLATFORM_NONE) {
		return FW_STATE_FORMAT;
	}
	if (platform != core->platform(core)) {
		return FW_STATE_OTHER_PLATFORM;
	}
	void* backup = calloc(1, core->stateSize(core));
	if (!backup) {
		return FW_NO_MEMORY;
	}
	int status = FW_OK;
	core->saveState(core, backup);
	if (!core->loadState(core, state)) {
		core->loadState(core, backup);
		status = FW_STATE_OTHER_GAME;
	}
	free(backup);
	return status;
}

int fw_state_load(struct fw_core* self, const uint8_t* data, size_t len, int flags) {
	struct mCore* core = self->core;
	struct VFile* vf = VFileFromConstMemory(data, len);
	if (!vf) {
		return FW_STATE_FORMAT;
	}
	/* mCoreLoadStateNamed restores the picture, the save and the cheats of a
	 * state even after it has refused the state itself, so that is tried apart
	 * and first. */
	size_t size = core->stateSize(core);
	struct mStateExtdata extra;
	mStateExtdataInit(&extra);
	void* found = mCoreExtractState(core, vf, &extra);
	if (!found) {
		mStateExtdataDeinit(&extra);
		vf->close(vf);
		return FW_STATE_FORMAT;
	}
	int64_t before = fw_clock_before_load(self);
	int status = try_state(core, found);
	mappedMemoryFree(found, size);
	if (status == FW_OK) {
		vf->seek(vf, 0, SEEK_SET);
		if (!mCoreLoadStateNamed(core, vf, flags)) {
			status = FW_STATE_FORMAT;
		}
		fw_clock_after_load(self, before, flags & SAVESTATE_RTC ? &extra : NULL);
	}
	mStateExtdataDeinit(&extra);
	vf->close(vf);
	return status;
}

int fw_save_get(struct fw_core* self, uint8_t** out, size_t* len) {
	void* sram = NULL;
	size_t size = self->core->savedataClone(self->core, &sram);
	*out = sram;
	*len = sram ? size : 0;
	return FW_OK;
}

int fw_save_set(struct fw_core* self, const uint8_t* data, size_t len) {
	return self->core->savedataRestore(self->core, data, len, true) ? FW_OK : FW_SAVE_REFUSED;
}
