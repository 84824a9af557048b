/* Savestates and battery saves. */
#include "internal.h"

#include <mgba-util/memory.h>
#include <mgba/core/serialize.h>
#include <mgba/internal/gb/gb.h>
#include <mgba/internal/gb/io.h>
#include <mgba/internal/gb/renderers/software.h>
#include <mgba/internal/gb/serialize.h>
#include <mgba/internal/gb/video.h>
#include <mgba/internal/gba/gba.h>
#include <mgba/internal/gba/serialize.h>
#include <mgba/internal/gba/video.h>

/* Returns one byte as the save of a game that has not used its save yet. libmgba does not put a save of 0 bytes into a
 * state, so when such a state is loaded, the current save would stay. When the game first uses its save, libmgba
 * extends it with bytes of 0xFF, so the one byte makes no difference. */
static size_t clone_empty_save(struct mCore* core, void** out) {
	UNUSED(core);
	uint8_t* byte = malloc(1);
	*out = byte;
	if (!byte) {
		return 0;
	}
	*byte = 0xFF;
	return 1;
}

/* Whether libmgba has not detected the kind of save yet, because the game has not used it. */
static bool has_unused_save(struct mCore* core) {
	return core->platform(core) == mPLATFORM_GBA
	    && ((struct GBA*) core->board)->memory.savedata.type == SAVEDATA_AUTODETECT;
}

static bool has_empty_save(struct mCore* core) {
	return has_unused_save(core) && !GBASavedataSize(&((struct GBA*) core->board)->memory.savedata);
}

/* States are saved and loaded without cheats. Otherwise libmgba would replace the current cheats with those in the
 * state. */
static int without_cheats(int flags) {
	return flags & ~SAVESTATE_CHEATS;
}

int fw_state_save(struct fw_core* self, int flags, uint8_t** out, size_t* len) {
	struct VFile* vf = VFileMemChunk(NULL, 0);
	if (!vf) {
		return FW_NO_MEMORY;
	}
	size_t (*clone)(struct mCore*, void**) = self->core->savedataClone;
	if (has_empty_save(self->core)) {
		self->core->savedataClone = clone_empty_save;
	}
	bool saved = mCoreSaveStateNamed(self->core, vf, without_cheats(flags));
	self->core->savedataClone = clone;
	if (!saved) {
		vf->close(vf);
		return FW_FAILED;
	}
	return fw_take_file(vf, out, len);
}

static enum mPlatform state_platform(const void* state) {
	/* Every state begins with a magic number, which has a version in its low bits. */
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

/* Restores the sound channels of a GBA a second time. From mGBA 0.10.2 on, libmgba advances them to the present after
 * it has restored them from a state. Without this second step, a state that is loaded and saved again would change. */
static void restore_sound(struct mCore* core, const void* from) {
	if (core->platform(core) != mPLATFORM_GBA) {
		return;
	}
	struct GBA* gba = core->board;
	const struct GBASerializedState* state = from;
	mTimingDeschedule(&gba->timing, &gba->audio.psg.frameEvent);
	GBAudioPSGDeserialize(&gba->audio.psg, &state->audio.psg, &state->audio.flags);
}

/* A number of cycles. In every state that libmgba saves, the next event of the screen and that of a memory transfer
 * (HDMA) are due before that many cycles have passed. */
#define LONGEST_WAIT 0x100000

static int32_t load_number(const void* from) {
	int32_t number;
	LOAD_32LE(number, 0, from);
	return number;
}

/* Whether an event of a Game Boy is due soon, or was due a short time ago. */
static bool is_due(bool scheduled, const void* when) {
	int32_t cycles = load_number(when);
	return scheduled && cycles > -LONGEST_WAIT && cycles < LONGEST_WAIT;
}

/* Whether a memory transfer (HDMA) that stops the processor of a Game Boy would never end. */
static bool is_blocked_forever(const struct GBSerializedState* state) {
	int32_t flags = load_number(&state->cpu.flags);
	uint16_t remaining;
	LOAD_16LE(remaining, 0, &state->memory.hdmaRemaining);
	return GBSerializedCpuFlagsIsBlocked(flags) && !is_due(remaining, &state->memory.hdmaNext);
}

/* Whether the timer of a Game Boy is so wrong that its counter overflows twice before its interrupt is due. Then libmgba
 * schedules the interrupt twice, and its list of events becomes a circle. In every state that libmgba saves, the
 * timer's next step is not late, is at most 544 cycles long, and has no more cycles left than its length. A pending
 * interrupt is due after at most 14 cycles, and before the end of the step. */
static bool has_broken_timer(const struct GBSerializedState* state) {
	int32_t left = load_number(&state->timer.nextEvent);
	int32_t length = load_number(&state->timer.nextDiv);
	int32_t interrupt = load_number(&state->timer.nextIRQ);
	bool pending = GBSerializedTimerFlagsIsIrqPending(state->timer.flags);
	return left < -0x200 || left > length || length > 0x400 || (pending && (interrupt > 0x10 || interrupt > left));
}

/* Whether the current line of a GBA's screen is after the last one. Then libmgba continues to count, and never reaches
 * the line that ends a frame. */
static bool is_after_last_line(const struct GBASerializedState* state) {
	uint16_t line;
	LOAD_16LE(line, 6, state->io); /* the register VCOUNT */
	return line >= VIDEO_VERTICAL_TOTAL_PIXELS;
}

/* Whether a frame of this state would never end, or would last for minutes. On a Game Boy, an event of the screen ends
 * each frame, and the state says which events are scheduled. While the screen is on, the event of the mode must be
 * scheduled. While the screen is off, the event of the frame must be scheduled or, except in mode 1, the event of the
 * mode. The boot ROM begins without an event of the screen, so it needs none while the screen is off. */
static bool is_endless(enum mPlatform platform, const void* data) {
	const struct GBSerializedState* state = data;
	if (platform != mPLATFORM_GB) {
		return is_after_last_line(data);
	}
	if (is_blocked_forever(state) || has_broken_timer(state)) {
		return true;
	}
	GBSerializedVideoFlags flags = state->video.flags;
	bool mode = is_due(!GBSerializedVideoFlagsIsNotModeEventScheduled(flags), &state->video.nextMode);
	bool frame = is_due(!GBSerializedVideoFlagsIsNotFrameEventScheduled(flags), &state->video.nextFrame);
	if (GBRegisterLCDCIsEnable(state->io[GB_REG_LCDC])) {
		return !mode;
	}
	if (GBSerializedVideoFlagsGetMode(flags) == 1) {
		mode = false;
	}
	/* This register is 0xFF as long as the boot ROM is mapped. */
	return !frame && !mode && state->io[GB_REG_BANK] != 0xFF;
}

/* Whether libmgba would write packets of a Super Game Boy's command past the end of its buffer, which has room for
 * eight packets. The state says how many are in the buffer, and how many are still to come. */
static bool has_too_many_packets(enum mPlatform platform, const void* data) {
	const struct GBSerializedState* state = data;
	if (platform != mPLATFORM_GB || !(state->model & GB_MODEL_SGB)) {
		return false;
	}
	int32_t flags = load_number(&state->sgb.flags);
	return GBSerializedSGBFlagsGetBufferIndex(flags) + (state->sgb.command & 7) > 8;
}

/* libmgba's own function loadState. It is the same for all GBA cores. */
static bool (*_Atomic libmgba_load_state)(struct mCore*, const void*);

/* Replaces loadState of a GBA. The save of another state, or a temporary save, can hide the cartridge's save. If the
 * new state has another type of save memory, libmgba would close such a hidden save. So the pointer to it is removed
 * during the call. */
static bool load_state(struct mCore* core, const void* state) {
	struct GBASavedata* savedata = &((struct GBA*) core->board)->memory.savedata;
	struct VFile* cartridge = savedata->realVf;
	bool hidden = cartridge && savedata->vf != cartridge;
	if (hidden) {
		savedata->realVf = NULL;
	}
	bool loaded = libmgba_load_state(core, state);
	if (hidden) {
		savedata->realVf = cartridge;
	}
	return loaded;
}

/* libmgba's own function savedataRestore of the Game Boy. It is the same for all of its cores. */
static bool (*_Atomic libmgba_restore_save)(struct mCore*, const void*, size_t, bool);

/* Replaces savedataRestore of a Game Boy. libmgba writes the save of a state over the current save. If the save of
 * another state is the current one, or if there is no file, a longer save would move the current save's memory, to which
 * the core has pointers. Only the data of a cartridge's clock makes a save longer, and libmgba reads this data only from
 * the cartridge's own save. So the part that does not fit is left out. */
static bool restore_save(struct mCore* core, const void* save, size_t size, bool writeback) {
	const struct GB* gb = core->board;
	if (writeback && (!gb->sramVf || gb->sramVf != gb->sramRealVf)) {
		size_t room = gb->sramVf ? (size_t) gb->sramVf->size(gb->sramVf) : gb->sramSize;
		if (!room) {
			return true;
		}
		if (size > room) {
			size = room;
		}
	}
	return libmgba_restore_save(core, save, size, writeback);
}

void fw_states_init(struct mCore* core) {
	if (core->platform(core) == mPLATFORM_GBA) {
		libmgba_load_state = core->loadState;
		core->loadState = load_state;
	} else {
		libmgba_restore_save = core->savedataRestore;
		core->savedataRestore = restore_save;
	}
}

/* Loads the state itself, without its extra data. If that fails, the console continues as it was before. */
static int try_state(struct mCore* core, const void* state) {
	enum mPlatform platform = state_platform(state);
	if (platform == mPLATFORM_NONE) {
		return FW_FAILED;
	}
	if (platform != core->platform(core)) {
		return FW_STATE_OTHER_PLATFORM;
	}
	if (is_endless(platform, state) || has_too_many_packets(platform, state)) {
		return FW_FAILED;
	}
	void* backup = calloc(1, core->stateSize(core));
	if (!backup) {
		return FW_NO_MEMORY;
	}
	int status = FW_OK;
	core->saveState(core, backup);
	if (!core->loadState(core, state)) {
		core->loadState(core, backup);
		restore_sound(core, backup);
		status = FW_STATE_OTHER_GAME;
	}
	free(backup);
	return status;
}

/* Returns false if the state has no save. */
static bool find_save(struct mStateExtdata* extra, struct mStateExtdataItem* save) {
	return mStateExtdataGet(extra, EXTDATA_SAVEDATA, save) && save->size > 0 && save->data;
}

/* If a game has not used its save yet, makes its save equal to the save in a loaded state. libmgba has written the
 * state's save over the start of the current one, which may be longer. If there was no current save, libmgba has
 * dropped the state's save. */
static void finish_unused_save(struct fw_core* self, struct mStateExtdata* extra, int flags) {
	struct mCore* core = self->core;
	struct mStateExtdataItem save;
	if (!has_unused_save(core) || !find_save(extra, &save)) {
		return;
	}
	struct VFile* file = ((struct GBA*) core->board)->memory.savedata.vf;
	if (!file) {
		self->restore_save(core, save.data, save.size, false);
	} else if (flags & SAVESTATE_SAVEDATA) {
		file->truncate(file, save.size);
	}
}

/* While the screen of a Game Boy is off, libmgba fills the picture with one colour: white, until the game changes the
 * first colour of its palette. After a state is loaded, this colour can be wrong. So it is taken from the state's
 * picture. */
static void restore_blank(struct mCore* core, struct mStateExtdata* extra) {
	struct mStateExtdataItem picture;
	if (core->platform(core) != mPLATFORM_GB || !mStateExtdataGet(extra, EXTDATA_SCREENSHOT, &picture)) {
		return;
	}
	struct GB* gb = core->board;
	bool off = !GBRegisterLCDCIsEnable(gb->memory.io[GB_REG_LCDC]) && !(gb->model & GB_MODEL_SGB);
	if (off && picture.data && picture.size >= (int32_t) sizeof(color_t)) {
		struct GBVideoSoftwareRenderer* renderer = (struct GBVideoSoftwareRenderer*) gb->video.renderer;
		memcpy(&renderer->palette[0], picture.data, sizeof(color_t));
	}
}

/* Restores the shades of a Super Game Boy 2. libmgba restores them for the first Super Game Boy only. */
static void restore_shades(struct mCore* core) {
	static const uint8_t registers[] = { GB_REG_BGP, GB_REG_OBP0, GB_REG_OBP1 };
	const struct GB* gb = core->board;
	if (core->platform(core) != mPLATFORM_GB || gb->model != GB_MODEL_SGB2) {
		return;
	}
	struct GBVideoRenderer* renderer = gb->video.renderer;
	for (size_t i = 0; i < sizeof(registers); ++i) {
		renderer->writeVideoRegister(renderer, registers[i], gb->memory.io[registers[i]]);
	}
}

int fw_state_load(struct fw_core* self, const uint8_t* data, size_t len, int flags) {
	struct mCore* core = self->core;
	struct VFile* vf = VFileFromConstMemory(data, len);
	if (!vf) {
		return FW_FAILED;
	}
	/* mCoreLoadStateNamed restores the picture, the save and the cheats of a state even if it refuses the state itself.
	 * So the state itself is tried first. */
	size_t size = core->stateSize(core);
	struct mStateExtdata extra;
	mStateExtdataInit(&extra);
	void* found = mCoreExtractState(core, vf, &extra);
	if (!found) {
		mStateExtdataDeinit(&extra);
		vf->close(vf);
		return FW_FAILED;
	}
	int64_t before = fw_clock_before_load(self);
	int status = try_state(core, found);
	if (status == FW_OK) {
		struct mStateExtdataItem save;
		if (flags & FW_KEEP_SAVE && flags & SAVESTATE_SAVEDATA && find_save(&extra, &save)) {
			fw_saves_settle(self, true);
		}
		vf->seek(vf, 0, SEEK_SET);
		bool (*restore_script_save)(struct mCore*, const void*, size_t, bool) = core->savedataRestore;
		core->savedataRestore = self->restore_save;
		bool loaded = mCoreLoadStateNamed(core, vf, without_cheats(flags));
		core->savedataRestore = restore_script_save;
		if (loaded) {
			restore_sound(core, found);
		} else {
			/* The same state was accepted a moment ago, so the only possible reason is a lack of memory. */
			status = FW_NO_MEMORY;
		}
		fw_clock_after_load(self, before, flags & SAVESTATE_RTC ? &extra : NULL);
		finish_unused_save(self, &extra, flags);
		restore_shades(core);
		if (flags & SAVESTATE_SCREENSHOT) {
			restore_blank(core, &extra);
		}
	}
	mappedMemoryFree(found, size);
	mStateExtdataDeinit(&extra);
	vf->close(vf);
	return status;
}

int fw_save_get(struct fw_core* self, uint8_t** out, size_t* len) {
	void* sram = NULL;
	size_t size = self->core->savedataClone(self->core, &sram);
	*out = sram;
	*len = sram ? size : 0;
	return size && !sram ? FW_NO_MEMORY : FW_OK;
}
